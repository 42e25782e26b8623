"""`python -m elastic`: the same as the `elastic` command."""

from .cli.main import main

main()
