"""What the tests of this engine share: a database, and processes that work."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest

# An empty host means the local socket, and the user of the operating system.
SERVER = os.environ.get("PAI_TEST_POSTGRES", "postgresql:///postgres")


@pytest.fixture
def anyio_backend() -> str:
    """The engine works on asyncio; what it says elsewhere has tests of its own."""
    return "asyncio"


@pytest.fixture
def url() -> Iterator[str]:
    """Give the URL of an empty database."""
    try:
        connection = psycopg.connect(SERVER, autocommit=True, connect_timeout=5)
    except psycopg.OperationalError as error:
        if os.environ.get("CI"):
            pytest.fail(f"no PostgreSQL answers: {error}")
        pytest.skip(f"no PostgreSQL answers (PAI_TEST_POSTGRES names one by its URL): {error}")
    name = f"pai_test_{uuid.uuid4().hex}"
    with connection:
        connection.execute(f'create database "{name}"')
        try:
            parts = urlsplit(SERVER)
            # urlunsplit would drop the two slashes of an empty host.
            made = urlunsplit(parts._replace(netloc=parts.netloc or "@", path=f"/{name}"))
            yield made.replace("//@", "//", 1)
        finally:
            connection.execute(f'drop database if exists "{name}" with (force)')
