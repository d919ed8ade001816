"""Options of a call, at the door: checked against the agent, and made what is stored."""

from __future__ import annotations

from copy import deepcopy

from pai.definition import RunOptions, choice_names, output_faults, run_options
from pai.errors import Fault, InvalidInput, PaiError
from pai.loop import BoundAgent
from pai.models import resolve_model
from pai.schema import JsonObject

__all__ = ("stored_options",)


def stored_options(agent: BoundAgent, options: object) -> tuple[RunOptions, JsonObject] | None:
    """
    The options as they are stored with a run; ``None`` if none were given.

    Args:
        agent: The agent of the run.
        options: What the caller gave: :class:`RunOptions`, a mapping of their JSON form, or nothing.

    Raises:
        UnknownOptionError: An option nobody knows.
        InvalidInput: A value does not fit, or names what the agent does not have.
    """
    if options is None:
        return None
    given = run_options(options)
    faults = [
        Fault("options.tool_choice", f"the agent declares no tool named {name!r}")
        for name in choice_names(given.tool_choice)
        if name not in agent.definition.choosable
    ]
    if given.output is not None:
        faults += output_faults(
            given.output, "options.output", agent.definition.outputs, classes=False
        )
    if given.model is not None:
        try:
            resolve_model(given.model)
        except PaiError as error:
            faults.append(Fault("options.model", str(error)))
    if faults:
        raise InvalidInput(faults, subject="options")
    return given, deepcopy(given.to_json())
