"""
Hypothesis strategies: random values of everything that has a rule with "always" in it.

They need Hypothesis, which pai itself does not; that is why they stand in a module of their own.
"""

from pai.testing._message_strategies import histories, messages, metadata, parts, streams
from pai.testing._schema_strategies import json_values, mutated, schema_types, values_for

__all__ = (
    "histories",
    "json_values",
    "messages",
    "metadata",
    "mutated",
    "parts",
    "schema_types",
    "streams",
    "values_for",
)
