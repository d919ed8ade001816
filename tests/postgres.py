"""Fresh databases on a PostgreSQL server that already runs."""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Iterator
from urllib.parse import urlsplit

# An empty host means the local socket, and the user of the operating system.
SERVER = os.environ.get("PAI_TEST_POSTGRES", "postgresql:///postgres")


class PostgresMissing(Exception):
    """No server answers, or psycopg is not installed; the text says what to do."""


@contextlib.contextmanager
def fresh_database() -> Iterator[str]:
    """
    Create an empty database, give its URL, and drop it at the end.

    Raises:
        PostgresMissing: No server answers, or psycopg is not installed.
    """
    try:
        import psycopg
    except ImportError as error:
        raise PostgresMissing("psycopg is not installed: install pai-core[postgres]") from error
    try:
        connection = psycopg.connect(SERVER, autocommit=True, connect_timeout=5)
    except psycopg.OperationalError as error:
        raise PostgresMissing(
            f"no PostgreSQL answers (PAI_TEST_POSTGRES names one by its URL): {error}"
        ) from error
    name = f"pai_test_{uuid.uuid4().hex}"
    with connection:
        connection.execute(f'create database "{name}"')
        try:
            yield _with_database(SERVER, name)
        finally:
            connection.execute(f'drop database if exists "{name}" with (force)')


def _with_database(url: str, name: str) -> str:
    parts = urlsplit(url)
    query = f"?{parts.query}" if parts.query else ""
    return f"{parts.scheme}://{parts.netloc}/{name}{query}"
