"""The command line: parse, call one library function, render."""

from __future__ import annotations

# Importing a module adds its commands, in the order in which the help lists them.
from attnmove.cli import data, models, filling, report, serving, demo, bench  # isort: skip
from attnmove.cli.root import app, main

__all__ = ["app", "bench", "data", "demo", "filling", "main", "models", "report", "serving"]
