"""Version 2: runs that wait for answers, messages that a later run replaced, titles, labels and short logs."""

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
    add("messages", column("labels", sa.Text))
    add("threads", column("titled_at", sa.Double))
    add("threads", column("titled_messages", sa.BigInteger))
    add("threads", column("titled_runs", sa.BigInteger))
    add("threads", column("compacted", sa.BigInteger))
    add("events", column("compact", sa.BigInteger))
    operations.drop_index("actions_expiring", table_name="actions")
