"""ends_with.py CODE: end with this exit code."""

from __future__ import annotations

import sys


def main() -> None:
    sys.exit(int(sys.argv[1]))


if __name__ == "__main__":
    main()
