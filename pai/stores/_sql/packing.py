"""Packing the bodies of short logs: they are read rarely, and most of an event is its keys."""

from __future__ import annotations

import zlib
from base64 import b64decode, b64encode

__all__ = ("packed", "unpacked")

# What was packed with it can only be read with it: it never changes.
_WORDS = (
    b'{"type":"tool-input-start","callId":"call_","tool":"{"type":"tool-call","callId":"call_",'
    b'"input":{"type":"tool-output","callId":"call_","output":"{"type":"tool-error","callId":"call_",'
    b'"error":"","outcome":"interrupted"},{"type":"data","name":"","value":{"id":"},'
    b'{"type":"source","id":"","url":"https://www.","title":"},{"type":"message-metadata",'
    b'"messageId":"","metadata":{"},{"type":"reasoning-start","id":"r1"},{"type":"reasoning-delta",'
    b'"id":"r1","text":"},{"type":"reasoning-end","id":"r1"},{"type":"reasoning-summary",'
    b'"message":{"id":"","role":"user","parts":[{"type":"text","text":"the of and to in is that for '
    b'with you are this not it on as be at or have from"}],"metadata":{},"runId":"","createdAt":"20'
    b'[{"type":"run-queued","operation":"send","message":{"id":"01","role":"user","parts":[{"type":'
    b'"text","text":""}],"metadata":{},"runId":"01","createdAt":"2026-01-01T00:00:00.000000Z"},'
    b'"metadata":{},"createdAt":"2026-01-01T00:00:00.000000Z","threadId":"","threadMetadata":{}},'
    b'{"type":"run-started","threadId":"","startedAt":"2026-01-01T00:00:00.000000Z"},'
    b'{"type":"step-started","index":0,"messageId":"01","createdAt":"2026-01-01T00:00:00.000000Z"},'
    b'{"type":"text-start","id":"t1"},{"type":"text-delta","id":"t1","text":""},'
    b'{"type":"text-end","id":"t1"},{"type":"step-finished","index":0,"reason":"tool-calls",'
    b'"reason":"stop","usage":{"inputTokens":1,"outputTokens":1,"totalTokens":2,'
    b'"reasoningTokens":0,"cachedInputTokens":0,"cacheWriteTokens":0}},{"type":"run-finished",'
    b'"status":"completed","outcome":"completed","stopReason":"stop","usage":{"inputTokens":1,'
    b'"outputTokens":1,"totalTokens":2},"metadata":{},"finishedAt":"2026-01-01T00:00:00.000000Z"}]'
)


def packed(body: str) -> str:
    """The JSON array in fewer bytes, as text that any database takes; as it is if that is shorter."""
    packer = zlib.compressobj(9, wbits=-15, zdict=_WORDS)
    data = packer.compress(body.encode()) + packer.flush()
    text = b64encode(data).decode("ascii")
    return text if len(text) < len(body) else body


def unpacked(text: str) -> str:
    """What :func:`packed` was given."""
    if text.startswith("["):  # no packed text does
        return text
    unpacker = zlib.decompressobj(wbits=-15, zdict=_WORDS)
    return (unpacker.decompress(b64decode(text)) + unpacker.flush()).decode()
