"""The Sphinx extensions of the documentation, as modules."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[2]


def load(name: str) -> ModuleType:
    """Import ``docs/_ext/NAME.py``, as Sphinx does."""
    if (docs := str(ROOT / "docs")) not in sys.path:
        sys.path.append(docs)
    return importlib.import_module(f"_ext.{name}")
