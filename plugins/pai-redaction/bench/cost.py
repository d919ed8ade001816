# ruff: noqa: INP001, T201  # a script that prints its table
"""
What redaction costs and how long it holds text back: ``python plugins/pai-redaction/bench/cost.py``.

The text is this project's own documentation, prose and code, in chunks of a word each. Times are
those of the best of several rounds; a first, cold round is told apart.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from pai_redaction import redaction
from pai_redaction._hider import Hider
from pai_redaction._marks import Marks
from pai_redaction._packs import packs

from pai import StreamPart, TextDelta

ROOT = Path(__file__).parents[3]
ROUNDS = 15


def words() -> list[str]:
    """The documentation as chunks of a word and the space before it."""
    pages = [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]
    return re.findall(r"\s*\S+", "\n".join([page.read_text("utf-8") for page in pages]))


def timed(function: Callable[[], object]) -> float:
    """Seconds of processor time."""
    start = time.process_time()
    function()
    return time.process_time() - start


def scanned(hider: Hider, chunks: list[str]) -> None:
    stream = hider.pieces()
    for chunk in chunks:
        stream.feed(chunk)
    stream.flush()


def rounds(hider: Hider, chunks: list[str], count: int) -> list[float]:
    return [timed(lambda: scanned(hider, chunks)) for _ in range(count)]


async def source(chunks: list[str]) -> AsyncIterator[StreamPart]:
    for chunk in chunks:
        yield TextDelta("t", chunk)


async def read(stream: AsyncIterator[StreamPart]) -> None:
    async for _ in stream:
        pass


def held(hider: Hider, chunks: list[str]) -> tuple[float, float, int, int]:
    """Chunks by which a character leaves later: mean, 99th percentile, most; most characters."""
    stream = hider.pieces()
    waiting: list[int] = []
    late: list[int] = []
    most = 0
    for number, chunk in enumerate(chunks):
        waiting += [number] * len(chunk)
        out = stream.feed(chunk)
        if stream.changed:  # places can't be told any more
            stream, waiting = hider.pieces(), []
            continue
        late += [number - came for came in waiting[: len(out)]]
        del waiting[: len(out)]
        most = max(most, len(waiting))
    late.sort()
    return sum(late) / len(late), late[len(late) * 99 // 100], late[-1], most


def main() -> None:
    chunks = words()
    size = sum(map(len, chunks)) / len(chunks)
    print(f"{len(chunks)} chunks of {size:.1f} characters")
    start = time.process_time()
    every = [rule for found in packs().values() for rule in found]
    hider = Hider(every, Marks("mask", None))
    print(f"made in {(time.process_time() - start) * 1e3:.0f} ms, once")
    cold = timed(lambda: scanned(hider, chunks))
    print(f"all packs, first text: {cold / len(chunks) * 1e6:.1f} us a chunk")
    best = min(rounds(hider, chunks, ROUNDS))
    print(f"all packs: {best / len(chunks) * 1e6:.1f} us a chunk")
    plugin = redaction()
    plain = min([timed(lambda: asyncio.run(read(source(chunks)))) for _ in range(ROUNDS)])
    through = min(
        [
            timed(lambda: asyncio.run(read(plugin.transform_step_stream(source(chunks), {}))))
            for _ in range(ROUNDS)
        ]
    )
    print(f"all packs, as a transform: {(through - plain) / len(chunks) * 1e6:.1f} us a chunk")
    for name, found in packs().items():
        best = min(rounds(Hider(found, Marks("mask", None)), chunks, 4))
        print(f"  {name}: {best / len(chunks) * 1e6:.1f} us a chunk")
    mean, p99, last, most = held(hider, chunks)
    print(f"held back: {mean:.2f} chunks (mean), {p99} (99 %), {last} (most); {most} characters")


if __name__ == "__main__":
    main()
