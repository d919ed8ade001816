"""One run: prepare, step, tool calls, settle; no SQL, no HTTP."""

from pai.loop._afterwards import reopened, tell_again
from pai.loop._agent import BoundAgent
from pai.loop._aside import asked_aside
from pai.loop._child_port import Child, ChildEnd, Children, NoChildren
from pai.loop._episode import Episode, Report
from pai.loop._history import repaired
from pai.loop._journal import Journal
from pai.loop._log import last_step
from pai.loop._prepare import build_context
from pai.loop._run import one_run
from pai.loop._side_text import make_label, make_title
from pai.loop._time_limits import limits

__all__ = (
    "BoundAgent",
    "Child",
    "ChildEnd",
    "Children",
    "Episode",
    "Journal",
    "NoChildren",
    "Report",
    "asked_aside",
    "build_context",
    "last_step",
    "limits",
    "make_label",
    "make_title",
    "one_run",
    "reopened",
    "repaired",
    "tell_again",
)
