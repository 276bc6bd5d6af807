"""The web pages, measured: first paint, accessibility, scanners."""
