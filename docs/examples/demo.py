"""A conversation that streams, calls a tool, and is still there in the next process."""

from __future__ import annotations

import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

QUESTIONS = ("What is 2 + 3?", "What did I ask before?")

with tempfile.TemporaryDirectory(prefix="pai-demo-") as folder:
    database = Path(folder) / "pai.db"
    for number, question in enumerate(QUESTIONS, start=1):
        command = ["chat", question, "--model=demo", "--thread=demo", f"--db={database}"]
        print(
            f"\n# Process {number} of {len(QUESTIONS)}: {shlex.join(['pai', *command])}", flush=True
        )
        subprocess.run([sys.executable, "-m", "pai", *command], check=True)
