"""
What can be swapped under pai: model drivers, stores and engines.

Each port says its guarantees first, then its methods. A kit in :mod:`pai.testing` checks them.
"""

from pai.ports._engine import Engine, EngineHost
from pai.ports._models import ModelDriver, ModelProfile, ModelRequest
from pai.ports._store import RecordScope, RunHold, Store, TransactionalStore

__all__ = (
    "Engine",
    "EngineHost",
    "ModelDriver",
    "ModelProfile",
    "ModelRequest",
    "RecordScope",
    "RunHold",
    "Store",
    "TransactionalStore",
)
