"""Loading an agent that the command line names."""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

from pai.definition import AgentDefinition
from pai.errors import DefinitionError, Fault, PaiError

__all__ = ("load_agent", "load_fault", "load_module", "only_agent", "split_arguments")

_ATTRIBUTE = re.compile(r"(?P<module>[A-Za-z_][\w.]*):(?P<attribute>[A-Za-z_]\w*)\Z")
_FILE = re.compile(r"(?P<path>.+\.py)(?::(?P<attribute>[A-Za-z_]\w*))?\Z", re.DOTALL)


def split_arguments(first: str | None, second: str | None) -> tuple[str | None, str | None]:
    """
    Agent and prompt: the first argument is an agent only if it looks like one.

    Raises:
        DefinitionError: Two arguments, and the first is no agent.
    """
    if first is None:
        return None, second
    if _ATTRIBUTE.match(first) or (_FILE.match(first) and "\n" not in first):
        return first, second
    if second is not None:
        raise DefinitionError(
            [Fault("app", f"{first!r} is no agent: write 'module:attribute' or a path to a .py"
                   " file, and quote a prompt of several words")],
            subject="chat",
        )  # fmt: skip
    return None, first


def load_agent(target: str) -> AgentDefinition[Any]:
    """
    The agent that *target* names.

    Raises:
        DefinitionError: It can't be found, can't be imported, or is no agent.
    """
    module, attribute = load_module(target)
    if attribute is None:
        return only_agent(module, target)
    found = getattr(module, attribute, None)
    if not isinstance(found, AgentDefinition):
        kind = "has no such attribute" if found is None else f"is a {type(found).__name__}"
        raise load_fault(target, f"{attribute!r} {kind}, no agent that define_agent() returned")
    return found


def load_module(target: str) -> tuple[ModuleType, str | None]:
    """
    The module that *target* names, and the attribute, where it names one.

    Raises:
        DefinitionError: It can't be found or imported.
    """
    file = _FILE.match(target)
    if file is not None:
        return _from_file(Path(file["path"]), target), file["attribute"]
    match = _ATTRIBUTE.match(target)
    if match is None:
        raise load_fault(target, "write 'module:attribute' or a path to a .py file")
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        return importlib.import_module(match["module"]), match["attribute"]
    except PaiError:
        raise
    except Exception as error:
        raise _broken(target, error) from error


def _from_file(path: Path, target: str) -> ModuleType:
    if not path.is_file():
        raise load_fault(target, "there is no such file")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise load_fault(target, "is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    sys.path.insert(0, str(path.parent.resolve()))
    try:
        spec.loader.exec_module(module)
    except PaiError:
        raise
    except Exception as error:
        raise _broken(target, error) from error
    return module


def only_agent(module: ModuleType, target: str) -> AgentDefinition[Any]:
    """The module's agent: the one called ``agent``, or the only one."""
    named = getattr(module, "agent", None)
    if isinstance(named, AgentDefinition):
        return named
    found = {name: item for name, item in vars(module).items() if isinstance(item, AgentDefinition)}
    if len(found) == 1:
        return next(iter(found.values()))
    if not found:
        raise load_fault(target, "defines no agent: call define_agent() at its top level")
    raise load_fault(target, "defines several agents: write one of "
                 + ", ".join(f"{target}:{name}" for name in found))  # fmt: skip


def _broken(target: str, error: Exception) -> DefinitionError:
    frames = traceback.extract_tb(error.__traceback__)
    last = frames[-1]
    return load_fault(
        target, f"{type(error).__name__}: {error} (in {last.filename}, line {last.lineno})"
    )


def load_fault(target: str, message: str) -> DefinitionError:
    """What to raise where *target* is not what it should be."""
    return DefinitionError([Fault(target, message)], subject="app")
