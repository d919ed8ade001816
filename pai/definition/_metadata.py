"""Metadata schemas and patches (A-META)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, TypeVar

import attrs

from pai.errors import Fault
from pai.protocol import Metadata
from pai.schema import JsonObject, check_metadata_class, compile_schema, initial, merge_patch

__all__ = ("EMPTY_METADATA", "MetadataPatch", "MetadataSchemas", "metadata_faults")

PrivateT = TypeVar("PrivateT")
PublicT = TypeVar("PublicT")

EMPTY_METADATA = Metadata({}, {})


@attrs.frozen(eq=False)
class MetadataSchemas(Generic[PrivateT, PublicT]):
    """
    What the two bags of a run, thread or message look like (A-META-1).

    Both classes describe complete objects and accept ``{}``. Private metadata stays on the
    server; public metadata can be read, never written, by clients (A-META-6).
    """

    private: type[PrivateT]
    public: type[PublicT]

    def initial(self) -> Metadata:
        """The bags of something new: the parsed ``{}``, made anew each time (A-META-3)."""
        return Metadata(initial(compile_schema(self.private)), initial(compile_schema(self.public)))

    def patched(self, bags: Metadata, patch: MetadataPatch, *, at: str) -> Metadata:
        """
        The bags after a sparse patch: merged, then checked whole, both or neither (A-META-5).

        Raises:
            InvalidInput: The result fits a schema no more.
        """
        private: Mapping[str, object] = bags.private
        public: Mapping[str, object] = bags.public
        if patch.private:
            private = merge_patch(
                compile_schema(self.private), _json(bags.private), patch.private,
                at=f"{at}.private",
            )  # fmt: skip
        if patch.public:
            public = merge_patch(
                compile_schema(self.public), _json(bags.public), patch.public, at=f"{at}.public"
            )
        return Metadata(private, public)


@attrs.frozen(eq=False)
class MetadataPatch:
    """Top-level keys to set in each bag; keys that are not named stay (A-META-5)."""

    private: Mapping[str, object] = attrs.field(factory=dict)
    public: Mapping[str, object] = attrs.field(factory=dict)


def _json(bag: Mapping[str, object]) -> JsonObject:
    return dict(bag)  # type: ignore[arg-type]  # bags hold checked JSON


def metadata_faults(
    schemas: object, at: str, *, reserved: frozenset[str] = frozenset()
) -> list[Fault]:
    """Faults of a pair of schemas, as far as they can be found when it is declared (A-META-2)."""
    if not isinstance(schemas, MetadataSchemas):
        return [Fault(at, "expected MetadataSchemas(private=..., public=...)")]
    faults: list[Fault] = []
    for bag, cls in (("private", schemas.private), ("public", schemas.public)):
        faults += check_metadata_class(cls, at=f"{at}.{bag}", reserved=reserved)
    return faults
