"""One file per revision.

MariaDB commits after each statement that changes a table, so that an upgrade may be cut short in the middle and begins
anew: a step looks whether it is done already.
"""
