"""The runtime: threads, runs, worker, watchers."""

from pai.runtime._accepting import Content
from pai.runtime._core import ErrorHandler
from pai.runtime._limits import Limits
from pai.runtime._once import run_once, run_once_sync
from pai.runtime._pai import Page, Pai, create_agent_runtime, create_pai
from pai.runtime._result import RunResult
from pai.runtime._run_handle import RunHandle
from pai.runtime._thread import ThreadHandle

__all__ = (
    "Content",
    "ErrorHandler",
    "Limits",
    "Page",
    "Pai",
    "RunHandle",
    "RunResult",
    "ThreadHandle",
    "create_agent_runtime",
    "create_pai",
    "run_once",
    "run_once_sync",
)
