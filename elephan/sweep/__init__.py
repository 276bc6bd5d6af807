"""Execution of a sweep: points become records on all cores (`executor`), with progress shown meanwhile."""
