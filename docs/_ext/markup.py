"""From docstrings to Markdown."""

from __future__ import annotations

import re


def to_markdown(text: str) -> str:
    """Turn the little reStructuredText of a docstring into one line of a Markdown table."""
    text = re.sub(r":\w+:`~?(?:pai\.[\w.]*\.)?([^`]+)`", r"`\1`", text.replace("``", "`"))
    return " ".join(text.split()).replace("|", "\\|")
