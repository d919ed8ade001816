"""Where threads live: in memory, or in a database."""

from __future__ import annotations

from pai.stores._memory import MemoryStore
from pai.stores._open import open_store
from pai.stores._versions import store_versions, upgrade_store

__all__ = ("MemoryStore", "open_store", "store_versions", "upgrade_store")
