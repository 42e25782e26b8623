"""`python -m elastic`: the `elastic` command."""

from .cli.main import main

main()
