"""Metadata schemas and patches (A-META)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, TypeVar

import attrs

from pai.errors import Fault, InvalidInput
from pai.protocol import Metadata
from pai.schema import (
    JsonObject,
    Schema,
    check_metadata_class,
    compile_schema,
    fitted,
    guarded,
    initial,
    merge_patch,
    same_json,
)

__all__ = (
    "EMPTY_METADATA",
    "MetadataMerge",
    "MetadataPatch",
    "MetadataSchemas",
    "metadata_faults",
)

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

        Keys that the schema of today refuses, and that the patch does not name, are left out
        (A-META-10).

        Raises:
            InvalidInput: The result fits a schema no more.
        """
        private: Mapping[str, object] = bags.private
        public: Mapping[str, object] = bags.public
        if patch.private:
            private = _guarded(self.private, private, patch.private, f"{at}.private")
        if patch.public:
            public = _merged(self.public, public, patch.public, f"{at}.public")
        return Metadata(private, public)

    def replaced(
        self,
        bags: Metadata,
        private: Mapping[str, object] | None,
        public: Mapping[str, object] | None,
        *,
        at: str,
    ) -> Metadata:
        """
        The bags with those that are given in place of the old ones, checked in the same way.

        Raises:
            InvalidInput: What is given does not fit.
        """
        if private is not None:
            private = _guarded(self.private, {}, private, f"{at}.private")
        if public is not None:
            public = merge_patch(compile_schema(self.public), {}, public, at=f"{at}.public")
        return Metadata(
            bags.private if private is None else private, bags.public if public is None else public
        )

    def read(self, bags: Metadata) -> tuple[Metadata, tuple[Fault, ...], tuple[Fault, ...]]:
        """
        Stored bags as the schemas of today have them (A-META-10).

        Returns:
            The bags, and what did not fit in the private and in the public one: it is left out.
        """
        schema: Schema[object] = compile_schema(self.private)
        private, hidden = fitted(schema, _json(bags.private))
        public, shown = fitted(compile_schema(self.public), _json(bags.public))
        if hidden:
            hidden = tuple(guarded(schema, hidden, "$"))
        return Metadata(private, public), hidden, shown


@attrs.frozen(eq=False)
class MetadataPatch:
    """Top-level keys to set in each bag; keys that are not named stay (A-META-5)."""

    private: Mapping[str, object] = attrs.field(factory=dict)
    public: Mapping[str, object] = attrs.field(factory=dict)


class MetadataMerge:
    """
    A patch for bags that others may change until it is written: a :data:`pai.protocol.Merge`.

    Args:
        schemas: What the bags must fit.
        base: What the writer knows of them.
        patch: The patch.
        at: How faults name them.

    Attributes:
        made: What the patch makes of *base*.

    Raises:
        InvalidInput: That does not fit.
    """

    __slots__ = ("_at", "_base", "_patch", "_schemas", "made")

    def __init__(
        self, schemas: MetadataSchemas[Any, Any], base: Metadata, patch: MetadataPatch, *, at: str
    ) -> None:
        self._schemas = schemas
        self._base = base
        self._patch = patch
        self._at = at
        self.made = schemas.patched(base, patch, at=at)

    def __call__(self, stored: Metadata) -> Metadata:
        # In nearly all cases nobody else has written, and the work is done already.
        base = self._base
        if stored is base or (
            same_json(_json(stored.private), _json(base.private))
            and same_json(_json(stored.public), _json(base.public))
        ):
            return self.made
        return self._schemas.patched(stored, self._patch, at=self._at)


def _guarded(
    cls: type[object], bag: Mapping[str, object], patch: Mapping[str, object], at: str
) -> JsonObject:
    """A private bag, patched: what is wrong is told without what is in it (A-META-6)."""
    try:
        return _merged(cls, bag, patch, at)
    except InvalidInput as error:
        faults = guarded(compile_schema(cls), error.faults, at)
    raise InvalidInput(faults, subject="metadata")


def _merged(
    cls: type[object], bag: Mapping[str, object], patch: Mapping[str, object], at: str
) -> JsonObject:
    schema: Schema[object] = compile_schema(cls)
    stored = _json(bag)
    try:
        return merge_patch(schema, stored, patch, at=at)
    except InvalidInput:
        # It may be that of old that does not fit.
        kept, misfits = fitted(schema, stored)
        if not misfits:
            raise
    return merge_patch(schema, kept, patch, at=at)


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
