"""What every test of a definition asks: what was refused, where, and in which words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pai import DefinitionError, PaiError, define_agent


def refused(
    make: Callable[..., object], kind: type[PaiError] = DefinitionError, /, **fields: Any
) -> dict[str, str]:
    """The faults of calling *make*, by path; the error is exactly of *kind*."""
    with pytest.raises(kind) as caught:
        make(**fields)
    assert type(caught.value) is kind
    faults = caught.value.faults  # type: ignore[attr-defined]  # all kinds asked for have them
    for fault in faults:
        # One text has all of it, for people who only see the traceback.
        assert fault.path in str(caught.value)
        assert fault.message in str(caught.value)
    return {fault.path: fault.message for fault in faults}


def refused_agent(kind: type[PaiError] = DefinitionError, /, **fields: Any) -> dict[str, str]:
    """The faults of an agent with these fields, all others being right."""
    return refused(define_agent, kind, **{"name": "calc", "model": "demo", **fields})
