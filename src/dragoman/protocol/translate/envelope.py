"""JSON-RPC messages as parsed JSON, and the two keys of `_meta` under which one version carries words of the other.

A field that the other version has no place for is *carried*: it goes into `_meta` under `dragoman/v1` or
`dragoman/v2`, by the version that knows it. The way back takes it out again and puts it where it was. A receiver that
knows nothing of this ignores the key, as the protocol demands.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple, cast

import msgspec

Json = Any
"""Parsed JSON: dict, list, str, int, float, bool or None."""
Object = dict[str, Json]

OF_V1 = "dragoman/v1"
OF_V2 = "dragoman/v2"
"""The keys of `_meta` for fields that only that version has."""

INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
REQUEST_CANCELLED = -32800
NOT_FOUND = -32002
UNSUPPORTED_VERSION = -32022


class Translated(NamedTuple):
    """The messages to send to each side in place of one that came, in order."""

    to_client: list[Object]
    to_agent: list[Object]


def to_client(*messages: Object) -> Translated:
    """Return messages for the client alone."""
    return Translated(list(messages), [])


def to_agent(*messages: Object) -> Translated:
    """Return messages for the agent alone."""
    return Translated([], list(messages))


def request(request_id: Json, method: str, params: Json) -> Object:
    """Return a request."""
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}


def notification(method: str, params: Json) -> Object:
    """Return a notification."""
    return {"jsonrpc": "2.0", "method": method, "params": params}


def result(request_id: Json, value: Json) -> Object:
    """Return the response to a request that succeeded."""
    return {"jsonrpc": "2.0", "id": request_id, "result": value}


def error(request_id: Json, code: int, message: str, data: Json = None) -> Object:
    """Return the response to a request that failed."""
    return {"jsonrpc": "2.0", "id": request_id, "error": {"code": code, "message": message} | _present(data=data)}


def update(session_id: str, value: Object) -> Object:
    """Return the notification of a session update."""
    return notification("session/update", {"sessionId": session_id, "update": value})


def key_of(request_id: Json) -> bytes:
    """Return the key of a request id in tables: 1 and "1" are two ids."""
    return msgspec.json.encode(request_id)


def as_object(value: Json) -> Object:
    """Return a value that is an object, an empty one for anything else."""
    return cast("Object", value) if isinstance(value, dict) else {}


def as_list(value: Json) -> list[Json]:
    """Return a value that is an array, an empty one for anything else."""
    return cast("list[Json]", value) if isinstance(value, list) else []


def objects_in(value: Json) -> list[Object]:
    """Return the objects of an array."""
    return [cast("Object", each) for each in as_list(value) if isinstance(each, dict)]


def carry(value: Object, version: str, fields: Object) -> Object:
    """Return an object with fields of a version in its `_meta`; the object itself where there are none."""
    if not fields:
        return value
    meta = as_object(value.get("_meta"))
    return {**value, "_meta": {**meta, version: {**as_object(meta.get(version)), **fields}}}


def move(value: Object, version: str, names: Iterable[str]) -> Object:
    """Return an object with the named fields of a version carried in its `_meta`."""
    found = {name: value[name] for name in names if name in value}
    if not found:
        return value
    return carry({name: each for name, each in value.items() if name not in found}, version, found)


def take_carried(value: Object, version: str) -> tuple[Object, Object]:
    """Return an object without what it carries for a version, and that."""
    meta = as_object(value.get("_meta"))
    if version not in meta:
        return value, {}
    rest = {name: each for name, each in meta.items() if name != version}
    bare = {name: each for name, each in value.items() if name != "_meta"}
    return (bare | {"_meta": rest} if rest else bare), as_object(meta[version])


def restore(value: Object, version: str) -> Object:
    """Return an object with the fields that it carries for a version at their place."""
    bare, carried = take_carried(value, version)
    return {**bare, **carried} if carried else bare


def without(value: Object, *names: str) -> Object:
    """Return an object without some of its fields."""
    return {name: each for name, each in value.items() if name not in names}


def rename(value: Object, old: str, new: str) -> Object:
    """Return an object with a field under another name, in the same place."""
    return {new if name == old else name: each for name, each in value.items()}


def _present(**fields: Json) -> Object:
    return {name: each for name, each in fields.items() if each is not None}
