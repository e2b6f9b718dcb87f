"""Servers with OpenAI's API: the models of a server, and the servers on this machine.

When the user opens the offers, the usual ports of the loopback interface are probed once, in parallel and within a
second. Any other program on such a port gets one GET request.
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
"""A remote server may be slow or asleep."""
MAX_ANSWER_BYTES = 2 * 1024 * 1024
"""Routers list some hundred models, with about a kilobyte each."""
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


class NoModelServerError(DragomanError):
    """An address is not a model server or is unreachable."""


class ModelServer(msgspec.Struct, frozen=True):
    """A server and the names of its models."""

    title: str
    url: str
    models: tuple[str, ...]

    @property
    def is_ollama(self) -> bool:
        """Whether this is Ollama at its usual port. Ollama has its own provider name."""
        return self.url == f"http://127.0.0.1:{OLLAMA_PORT}/v1"


class _Model(msgspec.Struct):
    id: str


class _Models(msgspec.Struct):
    data: list[_Model]


def check_address(address: str) -> str:
    """Return the base URL for an address that the user typed. Raises NoModelServerError.

    The default scheme is http and the default path is `/v1`.
    """
    text = address.strip()
    text = text if "://" in text else f"http://{text}"
    try:
        parts = urlsplit(text)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        parts, port = urlsplit(""), ""
    if parts.scheme not in ("http", "https") or not parts.hostname or not text.isascii() or " " in text:
        raise NoModelServerError("the server address is not valid; expected one such as http://127.0.0.1:1234/v1")
    if parts.username or parts.password or parts.query:
        raise NoModelServerError(
            "the address contains a user name, a password or a query; leave these out, and enter the key separately"
        )
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}{port}{parts.path.rstrip('/') or '/v1'}"


async def find_local_servers(ports: "dict[int, str] | None" = None) -> list[ModelServer]:
    """Return the model servers on this machine that offer a model. Takes at most a second."""
    async with _client() as client:
        asked = [_probe(client, port, title) for port, title in (ports or LOCAL_SERVERS).items()]
        return [server for server in await asyncio.gather(*asked) if server is not None]


async def list_models(base_url: str, key: str | None) -> list[str]:
    """Return the model names at an address. Raises NoModelServerError."""
    try:
        async with asyncio.timeout(LIST_S), _client(from_environment=True) as client:
            models = await _ask(client, base_url, key)
    except (TimeoutError, OSError) as error:
        raise NoModelServerError(
            f"{base_url} cannot be reached: {_reason(error)}; is a server running there?"
        ) from None
    if not models:
        raise NoModelServerError(f"{base_url} offers no model; load a model there, or enter the name of one")
    return models


async def _probe(client: "AsyncClient", port: int, title: str) -> ModelServer | None:
    url = f"http://127.0.0.1:{port}/v1"
    try:
        async with asyncio.timeout(PROBE_S):
            models = await _ask(client, url, None)
    except (TimeoutError, OSError, NoModelServerError):
        return None
    return ModelServer(title, url, tuple(models)) if models else None


async def _ask(client: "AsyncClient", base_url: str, key: str | None) -> list[str]:
    """Return the model names. Raises OSError or NoModelServerError."""
    from httpx2 import HTTPError

    # The address may lead to any program. Read a limited answer, and explain each way in which it is not a model list.
    headers = {"authorization": f"Bearer {key}"} if key else {}
    body = b""
    try:
        async with client.stream("GET", f"{base_url}/models", headers=headers) as answer:
            status = answer.status_code
            async for piece in answer.aiter_bytes():
                body += piece
                if len(body) > MAX_ANSWER_BYTES:
                    raise NoModelServerError(
                        f"{base_url} sent a list of models that is too long: more than {MAX_ANSWER_BYTES} bytes"
                    )
    except HTTPError as error:
        raise OSError(one_line(str(error), 200)) from None
    if status in (401, 403):
        raise NoModelServerError(
            f"{base_url} did not accept the key" if key else f"{base_url} requires a key; enter it"
        )
    if status != 200:
        raise NoModelServerError(f"{base_url} answered the request for its models with status {status}")
    try:
        found = msgspec.json.decode(body, type=_Models).data
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise NoModelServerError(f"{base_url} is not an OpenAI-compatible server: it sent no list of models") from None
    return [model.id for model in found if model.id and one_line(model.id) == model.id][:MAX_MODELS]


def _client(*, from_environment: bool = False) -> "AsyncClient":
    """Return a client that follows no redirects, so that a key goes nowhere else.

    Proxies are used only for other machines.
    """
    from httpx2 import AsyncClient, Timeout

    return AsyncClient(follow_redirects=False, trust_env=from_environment, timeout=Timeout(LIST_S))


def _reason(error: BaseException) -> str:
    return str(error) or "it did not answer in time"
