"""Keeps the conversation of an agent within its model's context."""

from pai_compaction._clear_tool_outputs import ClearToolOutputs, clear_tool_outputs
from pai_compaction._marks import Marks
from pai_compaction._strategy import Prompt, Strategy, Work
from pai_compaction._summarise import Summarise, summarise
from pai_compaction._summary import Summary
from pai_compaction._window import Window, window
from pai_compaction.plugin import Compaction, Options, compaction

__all__ = (
    "ClearToolOutputs",
    "Compaction",
    "Marks",
    "Options",
    "Prompt",
    "Strategy",
    "Summarise",
    "Summary",
    "Window",
    "Work",
    "clear_tool_outputs",
    "compaction",
    "summarise",
    "window",
)
