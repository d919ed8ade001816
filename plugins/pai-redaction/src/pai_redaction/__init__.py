"""Redaction for pai: secrets and personal data never reach a row, an event, a log or a wire."""

from __future__ import annotations

from pai_redaction._rule import Check, Rule
from pai_redaction.plugin import Redaction, redaction

__all__ = ("Check", "Redaction", "Rule", "redaction")
