"""Test methods: each a function of a way to run a trial, so that a model of a line stands in for one in tests."""
