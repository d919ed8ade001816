"""The driver for OpenAI's Responses API."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, final

from pai.models._openai.driver import Decoder, OpenAIDriver
from pai.models._openai.encode import dump, joined
from pai.models._openai.endpoint import PROVIDER, Endpoint
from pai.models._openai.history import encoded_history
from pai.models._openai.response_items import encode_message, encode_system
from pai.models._openai.responses_stream import ResponsesDecoder
from pai.models._openai.settings import merge_options, responses_settings
from pai.models._openai.tools import EncodedTools, responses_tool
from pai.models._profiles import reasoning_levels, reasons
from pai.ports import ModelRequest
from pai.schema import JsonObject

if TYPE_CHECKING:
    from openai import AsyncOpenAI

__all__ = ("OpenAIResponses", "from_name")


def from_name(model: str) -> OpenAIResponses:
    """The driver for ``openai:<model>``."""
    return OpenAIResponses(model)


@final
class OpenAIResponses(OpenAIDriver):
    """
    A model behind the Responses API; see the base class for address and key.

    Nothing is stored at the provider unless ``provider_options`` say ``store``: reasoning comes
    encrypted and goes back with the messages, to the host that it came from alone. Provider tools
    of ``"openai"`` are sent as ``{"type": name, ...}``, and the records of their calls go back
    whole.
    """

    path = "/responses"

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        client: AsyncOpenAI | None = None,
    ) -> None:
        super().__init__(model, base_url=base_url, api_key=api_key, client=client)
        self._tools = EncodedTools(responses_tool)

    def _decoder(self, request: ModelRequest, endpoint: Endpoint) -> Decoder:
        options = request.provider_options.get(PROVIDER, {})
        return ResponsesDecoder(request, endpoint.place, stored=options.get("store") is True)

    def _body(self, request: ModelRequest, endpoint: Endpoint) -> bytes:
        levels = reasoning_levels(self._model)
        options = request.provider_options.get(PROVIDER)
        head: JsonObject = {"model": self._model, "store": False}
        head |= responses_settings(request, endpoint, self._model, levels)
        head = merge_options(head, options)
        head["stream"] = True
        if head["store"] is False and reasons(levels) and "include" not in head:
            # Nothing is kept at the provider, so its reasoning has to come to us and back.
            head["include"] = ["reasoning.encrypted_content"]
        system = [each for each in request.instructions if each.content]
        plain = not any(each.provider_options.get(PROVIDER) for each in system)
        if plain and system and "instructions" not in head:
            head["instructions"] = "\n\n".join([each.content for each in system])
        pieces = [dump(head)[:-1]]
        if "input" not in head:
            encode = partial(encode_message, origin=endpoint.place)
            items = [] if plain else [encode_system(each) for each in system]
            items += encoded_history(request.messages, f"openai-responses {endpoint.place}", encode)
            pieces.append(b',"input":[%b]' % joined(items))
        if "tools" not in head and (tools := self._tools(request)):
            pieces.append(b',"tools":[%b]' % tools)
        pieces.append(b"}")
        return b"".join(pieces)
