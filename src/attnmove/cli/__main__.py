"""`python -m attnmove.cli` is `attnmove`."""

from attnmove.cli import main

main()
