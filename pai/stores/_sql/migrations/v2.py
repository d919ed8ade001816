"""Version 2: runs that wait for answers, and messages that a later run replaced."""

from __future__ import annotations

import sqlalchemy as sa
from alembic.operations import Operations

__all__ = ("upgrade",)

_KEY = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade(operations: Operations) -> None:
    add, column = operations.add_column, sa.Column
    add("messages", column("replaced", sa.BigInteger))
    add("runs", column("after", _KEY))
    add("runs", column("steps", sa.BigInteger, nullable=False, server_default="0"))
    add("runs", column("patch", sa.Text))
    operations.drop_index("actions_expiring", table_name="actions")
