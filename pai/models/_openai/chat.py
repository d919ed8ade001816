"""The driver for the chat completions API, and for the many servers that speak it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, final

from pai.models._openai.chat_messages import encode_message, encode_system
from pai.models._openai.chat_stream import ChatDecoder
from pai.models._openai.driver import Decoder, OpenAIDriver
from pai.models._openai.encode import dump, joined
from pai.models._openai.endpoint import PROVIDER, Endpoint
from pai.models._openai.history import encoded_history
from pai.models._openai.settings import chat_settings, merge_options
from pai.models._openai.tools import EncodedTools, chat_tool
from pai.models._profiles import reasoning_levels
from pai.ports import ModelRequest
from pai.schema import JsonObject

if TYPE_CHECKING:
    from openai import AsyncOpenAI

__all__ = ("OpenAIChat", "from_name")


def from_name(model: str) -> OpenAIChat:
    """The driver for ``openai-chat:<model>``."""
    return OpenAIChat(model)


@final
class OpenAIChat(OpenAIDriver):
    """
    A model behind the chat completions API; see the base class for address and key.

    What goes to a server other than OpenAI's own differs a little: ``max_tokens`` and ``top_k`` are
    used there, the prompt cache is left alone (O-12), and reasoning goes back with the calls that
    it led to. Provider tools of ``"openai"`` are sent as ``{"type": name, ...}``: few servers take
    any on this API. What one ran itself has no form in this API's history and is left out.
    """

    path = "/chat/completions"

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        client: AsyncOpenAI | None = None,
    ) -> None:
        super().__init__(model, base_url=base_url, api_key=api_key, client=client)
        self._tools = EncodedTools(chat_tool)

    def _decoder(self, request: ModelRequest, endpoint: Endpoint) -> Decoder:
        return ChatDecoder(request)

    def _body(self, request: ModelRequest, endpoint: Endpoint) -> bytes:
        head: JsonObject = {"model": self._model, "stream_options": {"include_usage": True}}
        head |= chat_settings(request, endpoint, self._model, reasoning_levels(self._model))
        head = merge_options(head, request.provider_options.get(PROVIDER))
        head["stream"] = True
        pieces = [dump(head)[:-1]]
        if "messages" not in head:
            codec = "openai-chat" if endpoint.own else f"openai-chat {endpoint.place}"
            encode = partial(encode_message, reasoning=not endpoint.own)
            items = [encode_system(each) for each in request.instructions if each.content]
            items += encoded_history(request.messages, codec, encode)
            pieces.append(b',"messages":[%b]' % joined(items))
        if "tools" not in head and (tools := self._tools(request)):
            pieces.append(b',"tools":[%b]' % tools)
        pieces.append(b"}")
        return b"".join(pieces)
