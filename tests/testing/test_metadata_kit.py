"""What authors check their metadata schemas with, and the clock they move."""

from __future__ import annotations

import attrs
import pytest

from pai import MetadataSchemas
from pai.protocol import ThreadKey
from pai.stores import MemoryStore
from pai.testing import FakeClock, check_metadata_schemas
from pai.testing._store_world import World


@attrs.frozen
class Bag:
    """Stable."""

    words: list[str] = attrs.field(factory=list, converter=sorted)


def _shrunk(text: str) -> str:
    # The probes of a definition have no run of three.
    return text.replace("  ", " ", 1)


@attrs.frozen
class Leaky:
    """Not stable: what it makes becomes something else again."""

    text: str = attrs.field(default="", converter=_shrunk)


def test_stable_schemas_pass():
    """A-META-2."""
    check_metadata_schemas(MetadataSchemas(Bag, Bag), values=50)


def test_a_value_that_changes_again_is_found():
    """A-META-2: by search, where the probes of a definition find nothing."""
    schemas = MetadataSchemas(Bag, Leaky)
    with pytest.raises(AssertionError, match=r"public\.text"):
        check_metadata_schemas(schemas, values=400)


@pytest.mark.anyio
async def test_a_lease_ends_by_the_clock():
    """R-4: without waiting."""
    clock = FakeClock(10.0)
    world = World(MemoryStore(clock=clock), ThreadKey("p", "t"))
    await world.begin(lease=15.0)
    clock.advance(14.9)
    assert await world.claim() is None
    clock.advance(0.2)
    assert (await world.must_claim()).takeovers == 1
    with pytest.raises(ValueError, match="never goes back"):
        clock.advance(-1)
