"""How the documentation is built: ``nox -s docs``."""

from __future__ import annotations

import sys
from importlib import metadata
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

project = "pai"
author = "The pai authors"
copyright = "2026, The pai authors"
release = metadata.version("pai-core")

extensions = [
    "_ext.api",
    "_ext.options",
    "_ext.rules",
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build", "examples"]
html_theme = "furo"
html_title = f"pai {release}"

myst_enable_extensions = ["colon_fence", "deflist", "substitution"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_class_signature = "separated"
napoleon_numpy_docstring = False

# What a name in single backticks is found to be.
default_role = "any"
# Other projects' names resolve only over the network, which a build does without.
nitpick_ignore_regex = [
    (r"py:.*", r"(anyio|attrs|cattrs|collections|contextlib|datetime|typing)\..*"),
    (r"py:(class|exc)", r"(Exception|TypeError|ValueError|object|str|int|float|bool)"),
]
