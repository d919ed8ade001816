"""Every example in the README and in the docs runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from sybil import Sybil
from sybil.document import Document
from sybil.parsers.myst import DocTestDirectiveParser, PythonCodeBlockParser, SkipParser

ROOT = Path(__file__).parents[2]
EXAMPLES = Sybil(
    parsers=[DocTestDirectiveParser(), PythonCodeBlockParser(), SkipParser()], path=str(ROOT)
)


def documents() -> list[Document]:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/**/*.md"))]
    parsed = [EXAMPLES.parse(page) for page in pages if "_build" not in page.parts]
    return [document for document in parsed if list(document.examples())]


@pytest.mark.parametrize("document", documents(), ids=lambda d: str(Path(d.path).relative_to(ROOT)))
def test_the_examples_of_a_page_run(document, tmp_path, monkeypatch):
    # Examples may write the files that they name.
    monkeypatch.chdir(tmp_path)
    for source in ROOT.glob("docs/examples/*/src"):
        monkeypatch.syspath_prepend(source)
    for example in document.examples():
        example.evaluate()
