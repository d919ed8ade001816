"""The commands of the script, and how it ends."""

from __future__ import annotations

import logging
import sys
from typing import Annotated, NoReturn

from cyclopts import App, Parameter

from pai.errors import PaiError

__all__ = ("app", "main")

app = App(
    name="pai",
    help="Agents whose lifecycle is open to plugins, on durable runs.",
    version_flags=["--version"],
    version="0.1.0",
)


@app.command
def chat(
    app_or_prompt: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None,
    prompt: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None,
    /,
    *,
    model: str | None = None,
    thread: str = "main",
    db: str = "pai.db",
) -> None:
    """
    Talk to an agent; the conversation is kept, and goes on in the next process.

    Without an agent a built-in one runs that works offline and can add numbers.

    Parameters
    ----------
    app_or_prompt
        The agent, as "module:attribute" or a path that ends in ".py"; anything else is the prompt.
    prompt
        What to say. Without it the conversation is interactive; "-" reads it all from the input.
    model
        The model instead of the agent's, e.g. "openai:gpt-5.2", "openai-chat:llama3" or "demo".
    thread
        The conversation.
    db
        The SQLite file that keeps it.
    """
    from pai.cli._chat import run_chat
    from pai.cli._load import split_arguments

    target, text = split_arguments(app_or_prompt, prompt)
    raise SystemExit(run_chat(target, text, model=model, thread=thread, db=db))


@app.command
def check(target: Annotated[str, Parameter(name="app")], /, *, values: int = 200) -> None:
    """
    Check an agent: say all that is wrong with it, and search its schemas for values they break on.

    Parameters
    ----------
    target
        The agent, as "module:attribute" or a path that ends in ".py".
    values
        How many values to try for each schema.
    """
    from pai.cli._check import print_check
    from pai.cli._load import load_agent

    raise SystemExit(print_check(load_agent(target), values=values))


@app.command
def manifest(target: Annotated[str, Parameter(name="app")], /) -> None:
    """
    Print an agent's manifest as JSON: its name, version, tools and exposed commands.

    Parameters
    ----------
    target
        The agent, as "module:attribute" or a path that ends in ".py".
    """
    from pai.cli._load import load_agent

    _print_json(load_agent(target).manifest)


@app.command
def contract(target: Annotated[str, Parameter(name="app")], /, *, public: bool = False) -> None:
    """
    Print an agent's contract as JSON: all shapes, as JSON Schema.

    Parameters
    ----------
    target
        The agent, as "module:attribute" or a path that ends in ".py".
    public
        Only what clients may know.
    """
    from pai.cli._load import load_agent

    agent = load_agent(target)
    _print_json(agent.public_contract if public else agent.contract)


@app.command
def hooks(target: Annotated[str, Parameter(name="app")], /) -> None:
    """
    Print an agent's hooks by phase, in the order they run, and why.

    Parameters
    ----------
    target
        The agent, as "module:attribute" or a path that ends in ".py".
    """
    from pai.cli._hooks import print_hooks
    from pai.cli._load import load_agent

    print_hooks(load_agent(target))


def _print_json(value: object) -> None:
    import json

    print(json.dumps(value, indent=2, ensure_ascii=False))


def main() -> NoReturn:
    """Run the script; an error of ours is one short message and exit code 1."""
    # The script says itself what went wrong; the loggers are for applications.
    logging.getLogger("pai").addHandler(logging.NullHandler())
    try:
        app()
    except PaiError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        # Whoever read our output has gone: that is no error of ours.
        sys.stderr.close()
        sys.exit(0)
    sys.exit(0)
