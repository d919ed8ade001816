"""Full-text retrieval: index folders and records, answer from them, with citations."""

from pai_rag._changes import Changes
from pai_rag._document import Change, Document, Gone, Known, Seen, Stamp
from pai_rag._index import Index
from pai_rag._passage import Passage
from pai_rag._record import Record
from pai_rag._searcher import Searcher
from pai_rag.plugin import Options, Rag, rag

__all__ = (
    "Change",
    "Changes",
    "Document",
    "Gone",
    "Index",
    "Known",
    "Options",
    "Passage",
    "Rag",
    "Record",
    "Searcher",
    "Seen",
    "Stamp",
    "rag",
)
