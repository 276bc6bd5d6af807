"""Print the requirements of pyproject.toml, one a line, for pip: of the package, or of one of its extras.

python scripts/requirements.py [EXTRA]
"""

import sys
import tomllib
from pathlib import Path


def main() -> None:
    """Print them. Raises KeyError if there is no such extra."""
    project = tomllib.loads((Path(__file__).resolve().parents[1] / "pyproject.toml").read_text())["project"]
    extras = sys.argv[1:]
    found = [project["optional-dependencies"][extra] for extra in extras] or [project["dependencies"]]
    print(*(requirement for listed in found for requirement in listed), sep="\n")


if __name__ == "__main__":
    main()
