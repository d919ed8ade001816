"""Measure, print a table, and with ``--check`` compare it with the limits."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

from .worker import Result

FLOOR = "floor_openai"
ADAPTERS = (FLOOR, "lean_openai", "pai_", "pai_sqlite")

# Case -> what of its result counts, and how it is compared with the floor's of the same round.
COLUMNS: dict[str, tuple[str, str]] = {
    "seq": ("cpu_ms", "ratio"),
    "conc": ("cpu_ms", "ratio"),
    "burst": ("cpu_us", "ratio"),
    "paced": ("cpu_us", "ratio"),
    "ttft": ("wall_ms", "difference"),
    "imports": ("cpu_ms", "value"),
    "grown": ("cpu_ms", "ratio"),
}
SLOW = ("grown",)
"""Cases that are only run when they are asked for."""
HEADINGS = (
    "adapter",
    "run, one at a time",
    "run, 64 at once",
    "chunk, burst",
    "chunk, 1 ms apart",
    "first text, ms over floor",
    "import, CPU ms",
    "turn 1,000 of a thread",
)
# Adapter -> case -> the highest median that `--check` accepts.
LIMITS: dict[str, dict[str, float]] = {
    "pai_": {"seq": 0.48, "conc": 0.55, "burst": 0.25, "ttft": 0.0, "imports": 110, "grown": 0.10},
    "pai_sqlite": {"seq": 0.95, "burst": 0.30, "grown": 0.10},
}

Rounds = dict[tuple[str, str], list[float]]


# Finds this package, and pai where it is installed: never by the working directory.
SEARCH = [str(Path(__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
ENVIRONMENT = os.environ | {"PYTHONPATH": os.pathsep.join(SEARCH), "PYTHONSAFEPATH": "1"}


def module(core: int, name: str, *args: str) -> list[str]:
    """Run a module of this package, bound to a processor where that can be done."""
    command = [sys.executable, "-m", f"bench.{name}", *args]
    if shutil.which("taskset") and (os.cpu_count() or 1) > core:
        return ["taskset", "-c", str(core), *command]
    return command


@contextlib.contextmanager
def running_server() -> Iterator[str]:
    """Start the fake model server on a free port and give its URL."""
    command = module(0, "server")
    with subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            yield f"http://127.0.0.1:{int(server.stdout.readline())}/v1"
        finally:
            server.terminate()


def run_worker(url: str, adapter: str, cases: list[str]) -> dict[str, Result]:
    """Run cases of an adapter in a process of its own."""
    command = module(1, "worker", url, adapter, *cases)
    done = subprocess.run(command, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True, check=True)
    lines = map(json.loads, done.stdout.splitlines())
    return {line["case"]: line["result"] for line in lines}


def measure(rounds: int, adapters: list[str], cases: list[str]) -> Rounds:
    """Run everything, interleaved, and compare within each round."""
    compare: dict[str, Callable[[float, float], float]] = {
        "ratio": lambda value, floor: value / floor,
        "difference": lambda value, floor: value - floor,
        "value": lambda value, _: value,
    }
    compared: Rounds = defaultdict(list)
    with running_server() as url:
        for number in range(rounds):
            order = random.Random(number).sample(adapters, len(adapters))
            results = {}
            for adapter in order:
                print(f"round {number + 1} of {rounds}: {adapter}", file=sys.stderr, flush=True)
                results[adapter] = run_worker(url, adapter, cases)
            for adapter in adapters:
                for case in cases:
                    key, how = COLUMNS[case]
                    value, floor = results[adapter][case][key], results[FLOOR][case][key]
                    compared[adapter, case].append(compare[how](value, floor))
    return compared


def table(compared: Rounds, adapters: list[str], cases: list[str]) -> str:
    """Lay the medians out in Markdown, each with its lowest and highest round."""
    headings = [HEADINGS[0], *(HEADINGS[1 + list(COLUMNS).index(case)] for case in cases)]
    rows = [headings, ["---"] * len(headings)]
    for adapter in adapters:
        row = [f"`{adapter}`"]
        for case in cases:
            values = compared[adapter, case]
            spread = f" ({min(values):.2f} to {max(values):.2f})" if len(values) > 1 else ""
            row.append(f"{statistics.median(values):.2f}{spread}")
        rows.append(row)
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def breaches(compared: Rounds) -> Iterator[str]:
    """Say which medians lie over their limits."""
    for (adapter, case), values in compared.items():
        limit = LIMITS.get(adapter, {}).get(case)
        median = statistics.median(values)
        if limit is not None and median > limit:
            yield f"{adapter} {case}: {median:.2f} is over its limit of {limit:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="nox -s bench --", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", nargs="+", choices=ADAPTERS, default=list(ADAPTERS))
    usual = [case for case in COLUMNS if case not in SLOW]
    parser.add_argument("--cases", nargs="+", choices=list(COLUMNS), default=usual)
    parser.add_argument("--check", action="store_true", help="fail where a limit is broken")
    parser.add_argument("--plugins", action="store_true", help="what plugins cost, instead")
    options = parser.parse_args()
    if options.plugins:
        with running_server() as url:
            subprocess.run(module(1, "plugin_cost", url), env=ENVIRONMENT, check=True)
        return
    adapters = [name for name in ADAPTERS if name == FLOOR or name in options.only]
    compared = measure(options.rounds, adapters, options.cases)
    print(table(compared, adapters, options.cases))
    if options.check and (broken := list(breaches(compared))):
        sys.exit("\n".join(broken))


if __name__ == "__main__":
    main()
