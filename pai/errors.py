"""
Every error that pai raises on purpose, sorted by when it happens.

::

    PaiError
    ├── DefinitionError              .faults      while an agent is declared or a runtime is built
    │   ├── MetadataSchemaError                   … all faults concern metadata schemas
    │   └── CapabilityBindingError                … all faults concern capabilities
    ├── UnknownOptionError (TypeError) .faults    an option nobody knows
    ├── PluginError                  .plugin .distribution .phase
    ├── InvalidInput (ValueError)    .faults      a value from outside that does not fit its schema
    ├── ThreadNotFound               .thread_id
    ├── ThreadBusy                   .thread_id
    ├── CallsPending                 .calls
    ├── AnswerConflict               .call_id
    ├── RunFailed                    .code .run_id
    ├── CommandFailed                .command
    ├── ModelError                   .provider .code .status .retry_after
    │   ├── MissingCredential        .variable
    │   ├── RateLimited
    │   ├── ContextOverflow
    │   ├── ModelTimeout
    │   └── IncompleteStream
    ├── StructuredOutputError        .code .raw_text
    ├── ToolError, ToolRetry, FatalToolError      what a tool raises to say how it ended
    └── StoreError
        ├── LeaseLost
        └── MigrationNeeded

Attributes carry the facts; the text is for people. No error carries a key, a header, private
metadata or runtime context (rule R-40), and every one survives pickling.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, final

__all__ = (
    "AnswerConflict",
    "CallsPending",
    "CapabilityBindingError",
    "CommandFailed",
    "ContextOverflow",
    "DefinitionError",
    "FatalToolError",
    "Fault",
    "IncompleteStream",
    "InvalidInput",
    "LeaseLost",
    "MetadataSchemaError",
    "MigrationNeeded",
    "MissingCredential",
    "ModelError",
    "ModelTimeout",
    "PaiError",
    "PluginError",
    "RateLimited",
    "RunFailed",
    "StoreError",
    "StructuredOutputError",
    "ThreadBusy",
    "ThreadNotFound",
    "ToolError",
    "ToolRetry",
    "UnknownOptionError",
)


@final
class Fault:
    """
    One thing that is wrong, and where.

    Args:
        path: Where it is, from the outside in: ``"tools.add.input.a"``, ``"$.items[2].name"``.
        message: What is wrong and, where it helps, what to do.
    """

    __slots__ = ("message", "path")

    path: Final[str]
    message: Final[str]

    def __init__(self, path: str, message: str) -> None:
        self.path = path
        self.message = message

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message

    def __repr__(self) -> str:
        return f"Fault({self.path!r}, {self.message!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Fault) and (self.path, self.message) == (other.path, other.message)

    def __hash__(self) -> int:
        return hash((self.path, self.message))

    def __reduce__(self) -> tuple[type[Fault], tuple[str, str]]:
        return Fault, (self.path, self.message)

    def under(self, prefix: str) -> Fault:
        """The same fault seen from further out: *prefix* goes before its path."""
        if not self.path:
            return Fault(prefix, self.message)
        # "$" is how a schema names its own root: it vanishes when the root has a name.
        rest = self.path[1:] if self.path.startswith("$") else "." + self.path
        return Fault(prefix + rest, self.message)


def _rebuild(
    cls: type[BaseException], args: tuple[object, ...], state: dict[str, object]
) -> BaseException:
    error = cls.__new__(cls, *args)
    error.args = args
    error.__dict__.update(state)
    return error


class PaiError(Exception):
    """The root of the tree: catch it to catch everything that pai raises on purpose."""

    def __reduce__(self) -> tuple[object, ...]:
        # Constructors take keywords and build the text from them, so unpickling must not call them.
        return _rebuild, (type(self), self.args, self.__dict__.copy())


def _summary(head: str, faults: tuple[Fault, ...]) -> str:
    if len(faults) == 1:
        return f"{head}: {faults[0]}"
    return f"{head}: {len(faults)} faults\n" + "\n".join(f"  - {fault}" for fault in faults)


class DefinitionError(PaiError):
    """
    A declaration is wrong; all its faults are reported at once.

    Args:
        faults: What is wrong, each with its path.
        subject: What was being declared, e.g. ``"agent 'calc'"``.
    """

    faults: tuple[Fault, ...]

    def __init__(self, faults: Iterable[Fault], *, subject: str = "definition") -> None:
        self.faults = tuple(faults)
        super().__init__(_summary(subject, self.faults))


class MetadataSchemaError(DefinitionError):
    """A metadata schema breaks the rules A-META-1 to A-META-9; no fault is of another kind."""


class CapabilityBindingError(DefinitionError):
    """Capabilities are missing, surplus or declared through two objects (A-CAP-1, A-CAP-2)."""


class UnknownOptionError(PaiError, TypeError):
    """An option that nobody knows was given; nothing was done (rule of run options)."""

    faults: tuple[Fault, ...]

    def __init__(self, faults: Iterable[Fault], *, subject: str = "options") -> None:
        self.faults = tuple(faults)
        super().__init__(_summary(subject, self.faults))


class PluginError(PaiError):
    """
    A plugin could not be loaded, or one of its hooks raised (R-33, R-36).

    The exception that caused it is ``__cause__``; its text is not repeated here.
    """

    plugin: str
    distribution: str | None
    phase: str | None

    def __init__(
        self,
        message: str,
        *,
        plugin: str,
        distribution: str | None = None,
        phase: str | None = None,
    ) -> None:
        self.plugin = plugin
        self.distribution = distribution
        self.phase = phase
        super().__init__(message)


class InvalidInput(PaiError, ValueError):
    """A value from outside does not fit what was declared for it; nothing was written."""

    faults: tuple[Fault, ...]

    def __init__(self, faults: Iterable[Fault], *, subject: str = "input") -> None:
        self.faults = tuple(faults)
        super().__init__(_summary(subject, self.faults))


class ThreadNotFound(PaiError):
    """No such thread in this partition for this agent (R-7, A-RUN-5)."""

    thread_id: str

    def __init__(self, thread_id: str) -> None:
        self.thread_id = thread_id
        super().__init__(f"thread {thread_id!r} is not found")


class ThreadBusy(PaiError):
    """The thread has an active run and the caller asked not to wait (R-2)."""

    thread_id: str

    def __init__(self, thread_id: str) -> None:
        self.thread_id = thread_id
        super().__init__(f"thread {thread_id!r} has an active run")


class CallsPending(PaiError):
    """The thread waits for answers to these calls (R-3a)."""

    calls: tuple[str, ...]

    def __init__(self, calls: Iterable[str]) -> None:
        self.calls = tuple(calls)
        super().__init__("calls are pending: " + ", ".join(self.calls))


class AnswerConflict(PaiError):
    """An answer does not belong to what is pending, or contradicts an earlier one (R-20)."""

    call_id: str

    def __init__(self, call_id: str, message: str) -> None:
        self.call_id = call_id
        super().__init__(f"call {call_id!r}: {message}")


class RunFailed(PaiError):
    """Raised by ``RunResult.raise_for_status()`` for a run that did not complete."""

    code: str
    run_id: str

    def __init__(self, code: str, run_id: str) -> None:
        self.code = code
        self.run_id = run_id
        super().__init__(f"run {run_id} failed: {code}")


class CommandFailed(PaiError):
    """
    A command raised, or its output does not fit its schema.

    What happened is ``__cause__``, and ``on_runtime_error`` was told; its text is not repeated here.
    """

    command: str

    def __init__(self, command: str) -> None:
        self.command = command
        super().__init__(f"command {command!r} failed")


class ModelError(PaiError):
    """
    A model provider refused, failed or could not be reached.

    Args:
        message: Short and free of headers, keys and content.
        provider: The provider's name, e.g. ``"openai"``.
        code: The provider's own code where it gave one, else ours.
        status: The HTTP status, if there was one.
        retry_after: Seconds the provider asks to wait, if it did.
    """

    default_code = "model_error"

    provider: str
    code: str
    status: int | None
    retry_after: float | None

    def __init__(
        self,
        message: str,
        *,
        provider: str,
        code: str | None = None,
        status: int | None = None,
        retry_after: float | None = None,
    ) -> None:
        self.provider = provider
        self.code = code or self.default_code
        self.status = status
        self.retry_after = retry_after
        super().__init__(message)


class MissingCredential(ModelError):
    """No key for the provider; ``variable`` names the environment variable to set."""

    default_code = "missing_credential"

    variable: str

    def __init__(self, provider: str, variable: str) -> None:
        self.variable = variable
        super().__init__(
            f"no key for {provider!r}: set the environment variable {variable}"
            " or give api_key= to the model",
            provider=provider,
        )


class RateLimited(ModelError):
    """The provider asks to slow down (429)."""

    default_code = "rate_limited"


class ContextOverflow(ModelError):
    """The request is longer than the model can read."""

    default_code = "context_overflow"


class ModelTimeout(ModelError):
    """The provider took too long."""

    default_code = "model_timeout"


class IncompleteStream(ModelError):
    """The provider's stream ended, or broke, before it said that it had finished."""

    default_code = "incomplete_stream"


class StructuredOutputError(PaiError):
    """The model's final answer does not fit the declared output, also after its repair round."""

    code: str
    raw_text: str

    def __init__(self, message: str, *, code: str, raw_text: str) -> None:
        self.code = code
        self.raw_text = raw_text
        super().__init__(message)


class ToolError(PaiError):
    """Raised by a tool: the call failed, and the model may read *message* (R-18)."""


class ToolRetry(PaiError):
    """Raised by a tool: the model should call again with other input; it may read *message*."""


class FatalToolError(PaiError):
    """Raised by a tool: the whole run ends as failed."""


class StoreError(PaiError):
    """The store could not do what was asked."""


class LeaseLost(StoreError):
    """Another worker holds the run now: what was to be written was not (R-4)."""


class MigrationNeeded(StoreError):
    """The database is of an older version: run ``pai db upgrade``."""
