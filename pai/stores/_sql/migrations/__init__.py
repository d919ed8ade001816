"""
What brings the tables from one version to the next, by alembic's operations.

Each step is a function of a module of its own, ``v2.py`` and so on; the number is the version it
makes. A step that was released never changes. It runs within the one transaction of the whole
upgrade; in SQLite foreign keys are not enforced meanwhile, and are checked at its end.
"""

from __future__ import annotations

from collections.abc import Callable

from alembic.operations import Operations

from pai.stores._sql.migrations import v2

__all__ = ("STEPS", "Step")

Step = Callable[[Operations], None]

STEPS: dict[int, Step] = {2: v2.upgrade}
"""By the version that a step makes; there is one for each version but the first."""
