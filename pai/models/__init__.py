"""
Model drivers: OpenAI's two APIs and what is compatible with them, and the offline demo.

Importing this imports no client library; the first request does.
"""

from __future__ import annotations

from pai.models._openai.chat import OpenAIChat
from pai.models._openai.responses import OpenAIResponses
from pai.models._resolve import resolve_model

__all__ = ("OpenAIChat", "OpenAIResponses", "resolve_model")
