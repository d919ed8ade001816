"""The script ``pai``."""

from pai.cli._app import main

__all__ = ("main",)
