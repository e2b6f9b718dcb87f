"""JSON-RPC messages as parsed JSON, and the `_meta` keys that carry fields of the other version.

A field that the other version does not have is *carried*: it moves into `_meta` under `dragoman/v1` or `dragoman/v2`,
the version that defines it. The translation back restores it. A receiver that does not know the key ignores it, as the
protocol requires.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple, cast

import msgspec

Json = Any
"""Parsed JSON: dict, list, str, int, float, bool or None."""
Object = dict[str, Json]

OF_V1 = "dragoman/v1"
OF_V2 = "dragoman/v2"
"""The `_meta` keys for fields that only that version has."""


class Translated(NamedTuple):
    """The messages to send to each side in place of a received one, in order."""

    to_client: list[Object]
    to_agent: list[Object]


def to_client(*messages: Object) -> Translated:
    """Return messages for the client only."""
    return Translated(list(messages), [])


def to_agent(*messages: Object) -> Translated:
    """Return messages for the agent only."""
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
    return {"jsonrpc": "2.0", "id": request_id, "error": {"code": int(code), "message": message} | _present(data=data)}


def update(session_id: str, value: Object) -> Object:
    """Return the notification of a session update."""
    return notification("session/update", {"sessionId": session_id, "update": value})


def key_of(request_id: Json) -> bytes:
    """Return a dictionary key for a request id. 1 and "1" are different ids."""
    return msgspec.json.encode(request_id)


def as_object(value: Json) -> Object:
    """Return the value if it is an object, otherwise an empty object."""
    return cast("Object", value) if isinstance(value, dict) else {}


def as_list(value: Json) -> list[Json]:
    """Return the value if it is an array, otherwise an empty list."""
    return cast("list[Json]", value) if isinstance(value, list) else []


def objects_in(value: Json) -> list[Object]:
    """Return the objects in an array."""
    return [cast("Object", each) for each in as_list(value) if isinstance(each, dict)]


def carry(value: Object, version: str, fields: Object) -> Object:
    """Return an object that carries fields of a version in its `_meta`. Return it unchanged if there are none."""
    if not fields:
        return value
    meta = as_object(value.get("_meta"))
    return {**value, "_meta": {**meta, version: {**as_object(meta.get(version)), **fields}}}


def move(value: Object, version: str, names: Iterable[str]) -> Object:
    """Return an object with the named fields moved into its `_meta`."""
    found = {name: value[name] for name in names if name in value}
    if not found:
        return value
    return carry({name: each for name, each in value.items() if name not in found}, version, found)


def split_carried(value: Object, version: str) -> tuple[Object, Object]:
    """Return an object without the fields that it carries for a version, and these fields."""
    meta = as_object(value.get("_meta"))
    if version not in meta:
        return value, {}
    rest = {name: each for name, each in meta.items() if name != version}
    bare = {name: each for name, each in value.items() if name != "_meta"}
    return (bare | {"_meta": rest} if rest else bare), as_object(meta[version])


def restore(value: Object, version: str) -> Object:
    """Return an object with the fields that it carries for a version restored."""
    bare, carried = split_carried(value, version)
    return {**bare, **carried} if carried else bare


def without(value: Object, *names: str) -> Object:
    """Return an object without some of its fields."""
    return {name: each for name, each in value.items() if name not in names}


def rename(value: Object, old: str, new: str) -> Object:
    """Return an object with one field renamed. The order of fields stays the same."""
    return {new if name == old else name: each for name, each in value.items()}


def _present(**fields: Json) -> Object:
    return {name: each for name, each in fields.items() if each is not None}
