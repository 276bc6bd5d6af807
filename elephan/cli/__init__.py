"""The command `elephan`: arguments in, text out; what it does is done by the API."""

from elephan.cli.main import main

__all__ = ["main"]
