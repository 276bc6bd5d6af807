"""A monitor: path tests by a schedule, what they found over years, alerts when a path is no longer what it was.

The process that runs all the time is lean: it imports neither SQLAlchemy nor Arrow. What needs them is done by child
processes that end (`elephan.monitor.children`).
"""
