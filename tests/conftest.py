"""What holds for every test."""

from __future__ import annotations

import os

# The networks of the tests are tiny: threads would wait for each other longer than they compute. Also for subprocesses.
os.environ.setdefault("OMP_NUM_THREADS", "1")
