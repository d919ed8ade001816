"""A model of the chain: :class:`Target`, and the request that it gets."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from pai import ModelDriver, ModelRequest, ModelSettings, SystemMessage
from pai.models import resolve_model
from pai.protocol import ProviderOptions

__all__ = ("Instructions", "Link", "Target", "as_messages", "driver_name")

Instructions = str | SystemMessage | Sequence[SystemMessage]
"""What instructions may be given as; a whole, never merged with others."""


@attrs.frozen(eq=False)
class Target:
    """
    A model to fall back to, with what is different for it.

    Args:
        model: A driver, or a name such as ``"openai:gpt-5.2"``.
        instructions: Replace the step's whole; ``None`` keeps them.
        model_settings: Replace the step's whole; ``None`` keeps them.
        provider_options: Replace the step's whole; ``None`` keeps them. Each driver reads its own
            provider's entry only, so keeping them does no harm.
    """

    model: ModelDriver | str
    instructions: Instructions | None = None
    model_settings: ModelSettings | None = None
    provider_options: ProviderOptions | None = None


@attrs.frozen(eq=False)
class Link:
    """
    A target, found and checked.

    Args:
        name: What it is called in events, metadata and errors.
        driver: Its driver.
        target: What is different for it.
        instructions: Its instructions, if it has its own.
    """

    name: str
    driver: ModelDriver
    target: Target
    instructions: tuple[SystemMessage, ...] | None

    @classmethod
    def of(cls, target: Target) -> Link:
        """
        Find the driver of a target.

        Raises:
            DefinitionError: There is no such model.
            TypeError: The instructions are of another kind.
        """
        driver = resolve_model(target.model)
        name = target.model if isinstance(target.model, str) else driver_name(driver)
        own = None if target.instructions is None else as_messages(target.instructions)
        return cls(name, driver, target, own)

    @property
    def keys(self) -> tuple[str, ...]:
        """By what it is found in ``instructions={...}``, the most exact first."""
        named = (self.name.partition(":")[0],) if isinstance(self.target.model, str) else ()
        return (self.name, *named, self.driver.provider)

    def request(self, request: ModelRequest) -> ModelRequest:
        """
        The step's request, for this model.

        Provider options of a system message stay on it (A-INSTR-3). What was noted of changes since
        the last call means nothing to a model that did not get that call, and a model that takes no
        structured output beside tools never sees it there.
        """
        target = self.target
        beside_tools = bool(request.tools) and not self.driver.profile.combined_output
        return attrs.evolve(
            request,
            model=self.driver,
            instructions=request.instructions if self.instructions is None else self.instructions,
            settings=target.model_settings or request.settings,
            provider_options=(
                request.provider_options
                if target.provider_options is None
                else target.provider_options
            ),
            mid_conversation=None,
            output=None if beside_tools else request.output,
        )


def driver_name(driver: ModelDriver) -> str:
    """What a driver is called: ``"provider:model"``."""
    return f"{driver.provider}:{driver.name}"


def as_messages(instructions: object) -> tuple[SystemMessage, ...]:
    """
    Instructions as system messages; empty text is none.

    Raises:
        TypeError: They are of another kind.
    """
    if isinstance(instructions, str):
        return (SystemMessage(instructions),) if instructions else ()
    if isinstance(instructions, SystemMessage):
        return (instructions,)
    if isinstance(instructions, Sequence) and all(
        isinstance(item, SystemMessage) for item in instructions
    ):
        return tuple(instructions)
    raise TypeError("expected text, a SystemMessage, or a list of SystemMessage objects")
