"""Model servers that speak OpenAI's format: which models one offers, and which run on this machine.

The usual ports of the loopback interface are asked once, side by side and within a second, when a person looks at the
offers. A program on such a port that is no model server gets one GET request.
"""

import asyncio
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec

from dragoman.errors import DragomanError
from dragoman.text import one_line

if TYPE_CHECKING:
    from httpx2 import AsyncClient

PROBE_S = 1.0
"""A server on this machine lists its models in milliseconds."""
LIST_S = 10.0
"""A server elsewhere may be slow, or asleep."""
MAX_ANSWER_BYTES = 2 * 1024 * 1024
"""Routers list some hundred models, with a kilobyte about each."""
MAX_MODELS = 500

OLLAMA_PORT = 11434

LOCAL_SERVERS = {
    OLLAMA_PORT: "Ollama",
    1234: "LM Studio",
    8080: "llama.cpp",
    8000: "vLLM",
    4000: "LiteLLM",
    1337: "Jan",
}
"""The servers by their usual ports."""


class ServerUnusable(DragomanError):
    """An address is no model server, or cannot be reached."""


class ModelServer(msgspec.Struct, frozen=True):
    """A server, and the names of its models."""

    title: str
    url: str
    models: tuple[str, ...]

    @property
    def is_ollama(self) -> bool:
        """Whether it is Ollama at its usual port, which has a name of its own among the providers."""
        return self.url == f"http://127.0.0.1:{OLLAMA_PORT}/v1"


class _Model(msgspec.Struct):
    id: str


class _Models(msgspec.Struct):
    data: list[_Model]


def check_address(given: str) -> str:
    """Return the base URL for an address that a person typed; raises ServerUnusable.

    A bare host gets http, and an address without a path the usual `/v1`.
    """
    text = given.strip()
    text = text if "://" in text else f"http://{text}"
    try:
        parts = urlsplit(text)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        parts, port = urlsplit(""), ""
    if parts.scheme not in ("http", "https") or not parts.hostname or not text.isascii() or " " in text:
        raise ServerUnusable("that is no address of a server; expected one such as http://127.0.0.1:1234/v1")
    if parts.username or parts.password or parts.query:
        raise ServerUnusable("the address has a name, a password or a query in it; leave these out, and give a key")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}{port}{parts.path.rstrip('/') or '/v1'}"


async def find_local_servers(ports: "dict[int, str] | None" = None) -> list[ModelServer]:
    """Return the model servers of this machine that have a model, within a second."""
    async with _client() as client:
        asked = [_probe(client, port, title) for port, title in (ports or LOCAL_SERVERS).items()]
        return [server for server in await asyncio.gather(*asked) if server is not None]


async def list_models(base_url: str, key: str | None) -> list[str]:
    """Return the names of the models at an address; raises ServerUnusable."""
    try:
        async with asyncio.timeout(LIST_S), _client(from_environment=True) as client:
            models = await _ask(client, base_url, key)
    except (TimeoutError, OSError) as error:
        raise ServerUnusable(f"{base_url} cannot be reached: {_reason(error)}; is a server running there?") from None
    if not models:
        raise ServerUnusable(f"{base_url} offers no model; load one there, or name one")
    return models


async def _probe(client: "AsyncClient", port: int, title: str) -> ModelServer | None:
    url = f"http://127.0.0.1:{port}/v1"
    try:
        async with asyncio.timeout(PROBE_S):
            models = await _ask(client, url, None)
    except (TimeoutError, OSError, ServerUnusable):
        return None
    return ModelServer(title, url, tuple(models)) if models else None


async def _ask(client: "AsyncClient", base_url: str, key: str | None) -> list[str]:
    """Return the names of the models; raises OSError and ServerUnusable."""
    from httpx2 import HTTPError

    headers = {"authorization": f"Bearer {key}"} if key else {}
    body = b""
    try:
        async with client.stream("GET", f"{base_url}/models", headers=headers) as answer:
            status = answer.status_code
            async for piece in answer.aiter_bytes():
                body += piece
                if len(body) > MAX_ANSWER_BYTES:
                    raise ServerUnusable(f"{base_url} sent no list of models, but more than {MAX_ANSWER_BYTES} bytes")
    except HTTPError as error:
        raise OSError(one_line(str(error), 200)) from None
    if status in (401, 403):
        raise ServerUnusable(f"{base_url} did not accept the key" if key else f"{base_url} wants a key; give it")
    if status != 200:
        raise ServerUnusable(f"{base_url} answered the question for its models with status {status}")
    try:
        found = msgspec.json.decode(body, type=_Models).data
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise ServerUnusable(
            f"{base_url} is no server that speaks OpenAI's format: it sent no list of models"
        ) from None
    return [model.id for model in found if model.id and one_line(model.id) == model.id][:MAX_MODELS]


def _client(*, from_environment: bool = False) -> "AsyncClient":
    """Return a client that follows no redirect, so that a key goes nowhere else; proxies only for other machines."""
    from httpx2 import AsyncClient, Timeout

    return AsyncClient(follow_redirects=False, trust_env=from_environment, timeout=Timeout(LIST_S))


def _reason(error: BaseException) -> str:
    return str(error) or "it did not answer in time"
