"""`python -m elephan.web.draw_report ID`, with the store's location on stdin: a run's report as HTML on stdout."""

from __future__ import annotations

import sys

from elephan.errors import ElephanError


def main() -> int:
    """Write the report; return the exit code."""
    from elephan.report.html import page_of
    from elephan.store.database import to_look_at

    try:
        store = to_look_at(sys.stdin.read() or None)
        if store is None:
            print("there is no such store", file=sys.stderr)
            return 1
        record = store.get(sys.argv[1])
        sys.stdout.buffer.write(page_of([record], lambda one: store.series(one.id)).encode())
    except ElephanError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
