"""Real hosts: the book of their names, the SSH session to each, and the agent that it deploys and drives."""

from elephan.hosts.book import Book, Host

__all__ = ["Book", "Host"]
