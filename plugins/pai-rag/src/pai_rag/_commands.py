"""The commands ``pai rag index`` and ``pai rag search``."""

from __future__ import annotations

import sys
from typing import Annotated

from cyclopts import App, Parameter

from pai_rag._index import DEFAULT_URL, Index
from pai_rag._passage import Passage

__all__ = ("commands",)

_WIDTH = 240


def commands() -> App:
    """The group ``rag``, for the script's application."""
    group = App(name="rag", help="Index documents, and search them.")
    group.command(index)
    group.command(search)
    return group


def index(
    folder: str,
    /,
    *,
    index: Annotated[str, Parameter(name="--index")] = DEFAULT_URL,
    partition: str = "default",
    name: str | None = None,
    exclude: Annotated[list[str] | None, Parameter(negative="")] = None,
) -> None:
    """
    Index the Markdown, HTML and text files in a folder; what is gone from it leaves the index.

    Parameters
    ----------
    folder
        The folder.
    index
        The index: "sqlite:///file.db" or "postgresql://...".
    partition
        Who finds it.
    name
        What the folder is called in the index; its absolute path if nothing is said.
    exclude
        Files or folders to leave out, as a pattern of their name or path; may be repeated.
    """
    with Index(index) as opened:
        changes = opened.add_folder(folder, partition=partition, name=name, exclude=exclude or ())
    for path, reason in changes.skipped.items():
        sys.stderr.write(f"skipped {path}: it {reason}\n")
    sys.stdout.write(f"{folder}: {changes}\n")


def search(
    query: Annotated[list[str], Parameter(allow_leading_hyphen=True)],
    /,
    *,
    index: Annotated[str, Parameter(name="--index")] = DEFAULT_URL,
    partition: str = "default",
    limit: int = 5,
) -> None:
    """
    Search an index, as the plugin does for a message.

    Parameters
    ----------
    query
        What to look for, in plain words.
    index
        The index: "sqlite:///file.db" or "postgresql://...".
    partition
        Where to look.
    limit
        Passages to show at most.
    """
    opened = Index(index)
    try:
        if not opened.open(create=False):
            sys.stderr.write("There is no index yet: make one with pai rag index FOLDER\n")
            raise SystemExit(1)
        passages = opened.search(" ".join(query), limit, partition=partition)
    finally:
        opened.close()
    for number, passage in enumerate(passages, 1):
        sys.stdout.write(_shown(number, passage))
    if not passages:
        sys.stdout.write("Nothing was found.\n")


def _shown(number: int, passage: Passage) -> str:
    text = " ".join(passage.text.split())
    if len(text) > _WIDTH:
        text = text[: _WIDTH - 1].rstrip() + "\u2026"
    origin = passage.url or passage.document
    return f"[{number}] {passage.title} ({origin})\n    {text}\n"
