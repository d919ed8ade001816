"""From a model's name, as in ``"openai:gpt-5.2"``, to its driver."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import cast
from weakref import WeakSet

from pai.errors import DefinitionError, Fault, PaiError, PluginError
from pai.ports import ModelDriver

__all__ = ("GROUP", "resolve_model")

GROUP = "pai.models"
"""The entry-point group: ``provider = "module:function"``, a function from a model to a driver."""

FromName = Callable[[str], ModelDriver]

_BUILT_IN = {
    "demo": "pai.models._demo:from_name",
    "openai": "pai.models._openai.responses:from_name",
    "openai-chat": "pai.models._openai.chat:from_name",
}
"""Ours, found also where the distribution is not installed; nobody else can take their names."""

_ELSEWHERE = {"smollm": "pai-smollm"}
"""Providers of ours in distributions of their own."""


def resolve_model(model: ModelDriver | str) -> ModelDriver:
    """
    The driver that *model* names, or *model* itself if it is one.

    A name is ``"provider:model"``, split at the first colon, or a provider alone where it has but
    one model (``"demo"``). The same name gives the same driver, so that its connections are shared.

    Args:
        model: A name or a driver.

    Raises:
        DefinitionError: The name has another form, no such provider is installed, or what was given
            is no driver.
        PluginError: The provider's package can't be imported.
    """
    if isinstance(model, str):
        return _by_name(model)
    kind = type(model)
    if kind not in _KINDS:
        # Asked once a class: it takes 150 µs, and a run resolves its model at each step.
        if not isinstance(model, ModelDriver):
            raise _refused(f"expected a name or a model driver, got {kind.__name__}")
        _KINDS.add(kind)
    return model


_KINDS: WeakSet[type] = WeakSet()
"""Classes whose instances are drivers."""


@lru_cache(maxsize=256)
def _by_name(name: str) -> ModelDriver:
    provider, colon, model = name.partition(":")
    if not provider or (colon and not model.strip()) or name != name.strip():
        raise _refused(f'expected "provider:model", such as "openai:gpt-5.2", got {name!r}')
    target = _BUILT_IN.get(provider)
    if target is not None:
        module, _, function = target.partition(":")
        make = cast("FromName", getattr(import_module(module), function))
    else:
        make = _installed(provider)
    driver = make(model)
    if not isinstance(driver, ModelDriver):
        raise _refused(f"provider {provider!r} made no model driver: {type(driver).__name__}")
    return driver


def _installed(provider: str) -> FromName:
    points = list(entry_points(group=GROUP, name=provider))
    if not points:
        raise _refused(_unknown(provider))
    dists = sorted({point.dist.name if point.dist else "?" for point in points})
    if len(points) > 1:
        raise _refused(f"provider {provider!r} is in {', '.join(dists)}: remove all but one")
    from stevedore import DriverManager

    try:
        manager: DriverManager[FromName] = DriverManager(GROUP, provider)
    except PaiError:
        raise
    except Exception as error:
        raise PluginError(
            f"the model provider {provider!r} can't be imported ({type(error).__name__})",
            plugin=provider,
            distribution=dists[0],
            phase="load",
        ) from error
    return cast("FromName", manager.driver)


def _unknown(provider: str) -> str:
    names = sorted({*_BUILT_IN, *(point.name for point in entry_points(group=GROUP))})
    known = f"installed are {', '.join(names)}"
    dist = _ELSEWHERE.get(provider)
    if dist is not None:
        return (
            f"provider {provider!r} is in the distribution {dist}, which is not installed: {known}"
        )
    return f"no model provider {provider!r}: {known}"


def _refused(message: str) -> DefinitionError:
    return DefinitionError([Fault("model", message)], subject="model")
