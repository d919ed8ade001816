"""What a database's schema is: names, types, keys and indexes, however they came about."""

from __future__ import annotations

import re
from typing import Any

COLUMNS = """
    SELECT column_name, data_type, collation_name, is_nullable, column_default
    FROM information_schema.columns
    WHERE table_schema = current_schema() AND table_name = %s
"""
CONSTRAINTS = """
    SELECT conname, pg_get_constraintdef(oid), convalidated FROM pg_constraint
    WHERE connamespace = current_schema()::regnamespace AND conrelid = %s::regclass
"""
INDEXES = "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = current_schema() AND tablename = %s"


def postgresql_shape(connection: Any, tables: set[str]) -> dict[str, Any]:
    return {
        table: [sorted(map(tuple, connection.execute(ask, (table,)))) for ask in (COLUMNS, CONSTRAINTS, INDEXES)]
        for table in sorted(tables)
    }  # fmt: skip


def sqlite_shape(connection: Any) -> dict[str, Any]:
    def pragma(name: str, of: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in connection.execute(f"PRAGMA {name}('{of}')")]

    shape: dict[str, Any] = {}
    listed = "SELECT name, rootpage > 0 FROM sqlite_master WHERE type = 'table' ORDER BY name"
    for table, _ in connection.execute(listed).fetchall():
        columns = sorted(row[1:] for row in pragma("table_xinfo", table))
        keys = sorted(row[2:] for row in pragma("foreign_key_list", table))
        (kept,) = [row[2:] for row in pragma("table_list", table)]
        indexes = {}
        for _, name, unique, origin, partial in pragma("index_list", table):
            of = [row[1:] for row in pragma("index_xinfo", name)]
            # Of a column only its place in the table is told: its name is what counts.
            terms = [row[1:] for row in of if row[4]]
            (sql,) = connection.execute(
                "SELECT sql FROM sqlite_master WHERE name = ?", (name,)
            ).fetchone() or (None,)
            where = re.search(r"WHERE (.*)", sql or "", re.DOTALL)
            indexes[name] = (unique, origin, partial, terms, where and where[1])
        shape[table] = (columns, keys, kept[1:], indexes)
    return shape
