"""The commands of the script, and how it ends."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Annotated, NoReturn

from cyclopts import App, Parameter

from pai.cli._choice import Choice
from pai.errors import PaiError

__all__ = ("app", "main")

app = App(
    name="pai",
    help="Agents whose lifecycle is open to plugins, on durable runs.",
    version_flags=["--version"],
    version="0.1.0",
)
plugins = App(name="plugins", help="List the installed plugins.")
app.command(plugins)
threads = App(name="threads", help="Look at an agent's threads, or delete one.")
app.command(threads)
db = App(name="db", help="Look at a database's tables, and bring them up to date.")
app.command(db)
new = App(name="new", help="Make something to begin with.")
app.command(new)

Plugins = Annotated[Choice, Parameter(name="*")]
Target = Annotated[str, Parameter(name="app")]
NO_CHOICE = Choice()


@app.command
def chat(
    app_or_prompt: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None,
    prompt: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None,
    /,
    *,
    model: str | None = None,
    thread: str = "main",
    db: str = "pai.db",
    choice: Plugins = NO_CHOICE,
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
    chosen = choice.plugins()
    raise SystemExit(run_chat(target, text, model=model, thread=thread, db=db, plugins=chosen))


@app.command
def check(
    target: Annotated[str, Parameter(name="app")],
    /,
    *,
    values: int = 200,
    lock: Path | None = None,
    locked: Path | None = None,
    choice: Plugins = NO_CHOICE,
) -> None:
    """
    Check an agent: say all that is wrong with it, and search its schemas for values they break on.

    Parameters
    ----------
    target
        The agent, as "module:attribute" or a path that ends in ".py".
    values
        How many values to try for each schema.
    lock
        Record the installed plugins in this file: name, distribution and version.
    locked
        Fail if the installed plugins are not those of this file.
    """
    from pai.cli._check import print_check
    from pai.cli._load import load_agent
    from pai.cli._lock import lock_faults, write_lock
    from pai.lifecycle import load_plugins

    agent = load_agent(target)
    loaded = load_plugins(choice.plugins())
    faults = lock_faults(locked, loaded) if locked is not None else []
    code = print_check(agent, values=values, plugins=loaded, faults=faults)
    if lock is not None and code == 0:
        write_lock(lock, loaded)
    raise SystemExit(code)


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
def hooks(target: Annotated[str, Parameter(name="app")], /, *, choice: Plugins = NO_CHOICE) -> None:
    """
    Print an agent's hooks by phase, in the order they run, those of installed plugins included.

    Parameters
    ----------
    target
        The agent, as "module:attribute" or a path that ends in ".py".
    """
    from pai.cli._hooks import print_hooks
    from pai.cli._load import load_agent

    print_hooks(load_agent(target), choice.plugins())


@app.command
def worker(
    target: Target,
    /,
    *,
    store: str | None = None,
    engine: str | None = None,
    choice: Plugins = NO_CHOICE,
) -> None:
    """
    Work on runs, in this process and beside others, until SIGTERM.

    It then hands the runs under way to other workers, which need not wait, and exits with 0.

    Parameters
    ----------
    target
        What create_pai() returned, a function that returns one, or an agent, as "module:attribute"
        or a path that ends in ".py".
    store
        The store's URL, for an agent; else that of the configuration file.
    engine
        The engine, for an agent: "embedded", or the name of an installed one.
    """
    from pai.cli._load_app import load_app
    from pai.cli._worker import run_worker

    made = load_app(target, store=store, engine=engine, plugins=choice.plugins())
    raise SystemExit(run_worker(made))


@threads.default
def list_of_threads(
    target: Target,
    /,
    *,
    agent: str | None = None,
    identity: str | None = None,
    store: str | None = None,
    limit: int = 20,
    after: str | None = None,
) -> None:
    """
    List threads, the newest first: id, when it was last written, title.

    Parameters
    ----------
    target
        What create_pai() returned, or an agent, as "module:attribute" or a path that ends in ".py".
    agent
        The agent's key, where there are several.
    identity
        Whose threads, as JSON.
    store
        The store's URL, for an agent; else that of the configuration file.
    limit
        Threads a page.
    after
        The cursor of an earlier page.
    """
    from pai.cli._load_app import load_app
    from pai.cli._threads import Of, list_threads

    made = load_app(target, store=store, engine=None, plugins=())
    list_threads(made, Of(agent, identity), limit=limit, after=after)


@threads.command
def show(
    target: Target,
    thread: str,
    /,
    *,
    agent: str | None = None,
    identity: str | None = None,
    store: str | None = None,
) -> None:
    """
    Print a thread: its messages and its runs.

    Parameters
    ----------
    target
        What create_pai() returned, or an agent, as "module:attribute" or a path that ends in ".py".
    thread
        The thread's id.
    agent
        The agent's key, where there are several.
    identity
        Whose thread, as JSON.
    store
        The store's URL, for an agent; else that of the configuration file.
    """
    from pai.cli._load_app import load_app
    from pai.cli._threads import Of, show_thread

    made = load_app(target, store=store, engine=None, plugins=())
    show_thread(made, thread, Of(agent, identity))


@threads.command
def delete(
    target: Target,
    thread: str,
    /,
    *,
    agent: str | None = None,
    identity: str | None = None,
    store: str | None = None,
    yes: Annotated[bool, Parameter(negative="")] = False,
    choice: Plugins = NO_CHOICE,
) -> None:
    """
    Delete a thread and all that is of it; plugins that watch for that are told.

    Parameters
    ----------
    target
        What create_pai() returned, or an agent, as "module:attribute" or a path that ends in ".py".
    thread
        The thread's id.
    agent
        The agent's key, where there are several.
    identity
        Whose thread, as JSON.
    store
        The store's URL, for an agent; else that of the configuration file.
    yes
        Do not ask.
    """
    from pai.cli._load_app import load_app
    from pai.cli._threads import Of, delete_thread

    made = load_app(target, store=store, engine=None, plugins=choice.plugins())
    delete_thread(made, thread, Of(agent, identity), yes=yes)


@plugins.default
def list_plugins(*, choice: Plugins = NO_CHOICE) -> None:
    """List the installed plugins: where they come from, where they stand, what they take."""
    from pai.cli._plugins import print_plugins

    print_plugins(choice.plugins())


@plugins.command
def doctor(*, choice: Plugins = NO_CHOICE) -> None:
    """Say all that is known of each plugin, and what is wrong with those that are broken."""
    from pai.cli._plugins import print_doctor

    raise SystemExit(print_doctor(choice))


@db.command
def upgrade(url: str | None = None, /) -> None:
    """
    Bring an older database to the tables of this pai, in one transaction.

    Nothing else may have it open meanwhile: stop servers and workers first, and make a backup.

    Parameters
    ----------
    url
        The database, as "sqlite:///path" or "postgresql://..."; else that of the configuration file.
    """
    from pai.cli._db import print_upgrade

    print_upgrade(url)


@db.command
def current(url: str | None = None, /) -> None:
    """
    Say which version a database's tables have; the exit code is 1 if it is not the present one.

    Parameters
    ----------
    url
        The database, as "sqlite:///path" or "postgresql://..."; else that of the configuration file.
    """
    from pai.cli._db import print_current

    raise SystemExit(print_current(url))


@new.command
def plugin(name: str, /, *, folder: Path | None = None) -> None:
    """
    Make a package with a plugin, whose tests pass at once.

    Parameters
    ----------
    name
        What the plugin is called, e.g. "at-most".
    folder
        Where to make it; by default in the folder pai-NAME, here.
    """
    from pai.cli._new import make_plugin

    root = make_plugin(name, folder)
    print(f"{root} is made. Run its tests there with nox; the hooks are in src/*/plugin.py.")


OURS = frozenset(app) - {"--help", "-h"}
"""Commands that no plugin can change: for these it is not worth the time to look."""


def _print_json(value: object) -> None:
    import json

    print(json.dumps(value, indent=2, ensure_ascii=False))


def main() -> NoReturn:
    """Run the script; an error of ours is one short message and exit code 1."""
    # The script says itself what went wrong; the loggers are for applications.
    logging.getLogger("pai").addHandler(logging.NullHandler())
    try:
        if len(sys.argv) < 2 or sys.argv[1] not in OURS:
            from pai.cli._plugins import add_commands

            add_commands(app)
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
