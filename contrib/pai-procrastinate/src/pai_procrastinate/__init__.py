"""An engine for many machines: procrastinate wakes workers, PostgreSQL holds the truth."""

from pai_procrastinate._engine import ProcrastinateEngine

__all__ = ("ProcrastinateEngine",)
