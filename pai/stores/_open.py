"""From a URL to a store."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import cast

from pai.errors import DefinitionError, Fault
from pai.ports import Store

__all__ = ("open_store",)

_OWN = ("memory", "postgresql", "sqlite")


def open_store(url: str) -> Store:
    """
    Make the store that *url* names; it is not open yet.

    Args:
        url: ``"memory:"``, ``"sqlite:///path"`` (``?synchronous=full`` to outlive a power cut),
            ``"postgresql://..."``, or one whose scheme is an entry point of ``pai.stores``.

    Raises:
        DefinitionError: No store has this name, its driver is missing, or the URL is not right.
    """
    scheme, mark, _ = url.partition(":")
    if not mark:
        # The text may be a password, or a path: it is not repeated.
        fault = Fault("store", "not a URL: write 'memory:', 'sqlite:///path' or 'postgresql://…'")
        raise DefinitionError([fault], subject="store")
    if scheme == "memory":
        from pai.stores._memory import from_url

        return from_url(url)
    if scheme in ("sqlite", "postgresql"):
        from pai.stores._sql import from_url as sql_from_url

        return sql_from_url(url)
    return _foreign(scheme, url)


def _foreign(scheme: str, url: str) -> Store:
    from stevedore import DriverManager
    from stevedore.exception import MultipleMatches, NoMatches

    reasons: list[str] = []
    try:
        manager: DriverManager[object] = DriverManager(
            "pai.stores",
            scheme,
            on_load_failure_callback=lambda _, entry, error: reasons.append(
                f"{entry.value} cannot be loaded: {type(error).__name__}: {error}"
            ),
        )
    except NoMatches:
        names = sorted({*_OWN, *(entry.name for entry in entry_points(group="pai.stores"))})
        reason = reasons[0] if reasons else f"no store has this name; known: {', '.join(names)}"
    except MultipleMatches:
        reason = "several installed packages have a store of this name: remove all but one"
    else:
        return cast("Store", manager.driver(url))  # type: ignore[operator]  # the group's promise
    raise DefinitionError([Fault(f"store {scheme!r}", reason)], subject="store")
