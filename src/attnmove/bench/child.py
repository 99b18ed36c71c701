"""A measurement in a process of its own: what it answers, what it says where it fails, and its memory."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

from attnmove.errors import RunError


def measured_by(module: str, *arguments: str, what: str) -> dict[str, Any]:
    """What `python -m attnmove.bench.MODULE ARGUMENTS` answers. Raises RunError with its last line, "`what` (exit …)",
    where it does not finish."""
    command = [sys.executable, "-m", f"attnmove.bench.{module}", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise RunError(f"{what} (exit {done.returncode}): {last}")
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def peak_mib() -> float:
    """The most memory this process has had so far."""
    status = Path("/proc/self/status")
    for line in status.read_text().splitlines() if status.exists() else ():
        # Linux hands the peak of the process that starts another down in ru_maxrss; this one begins with the program.
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024**2 if sys.platform == "darwin" else 1024)
