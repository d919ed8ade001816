"""The statements: each is answered from an index, whatever lies in the tables."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

import pytest

from pai.stores._sql import schema
from pai.stores._sql.queries import Queries
from pai.stores._sql.statement import Statement

STATEMENTS = {
    name: value for name, value in vars(Queries("sqlite")).items() if isinstance(value, Statement)
}


@pytest.fixture(scope="module")
def connection() -> Iterator[sqlite3.Connection]:
    made = sqlite3.connect(":memory:")
    schema.create(made, "sqlite")
    yield made
    made.close()


@pytest.mark.parametrize("name", STATEMENTS)
def test_no_statement_scans_a_table(connection: sqlite3.Connection, name: str):
    sql = STATEMENTS[name].sql
    plan = connection.execute("EXPLAIN QUERY PLAN " + sql, [None] * sql.count("?")).fetchall()
    steps = [row[3] for row in plan]
    assert not [step for step in steps if step.startswith("SCAN")]
    # The few runs of a thread are sorted when all of it is read; nothing else is.
    sorts = [step for step in steps if "TEMP B-TREE" in step]
    assert not sorts or name == "runs"


def test_both_dialects_have_the_same_statements():
    other = vars(Queries("postgresql"))
    assert set(STATEMENTS) == {k for k, v in other.items() if isinstance(v, Statement)}
