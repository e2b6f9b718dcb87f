"""Initialisation and session setup: versions, capabilities, authentication methods and MCP servers.

Version 2 announces support with an object where version 1 has a boolean, and groups session capabilities under
`session`. The capabilities of the other version are carried completely, so no advertised capability is lost.
"""

from dragoman.protocol.translate.envelope import (
    OF_V1,
    OF_V2,
    Json,
    Object,
    as_object,
    carry,
    objects_in,
    rename,
    restore,
    split_carried,
    without,
)

UNNAMED: Object = {"name": "unknown", "version": "0"}
"""The name of a version 1 peer without a name, because version 2 requires one."""

_SHARED_SESSION = ("delete", "additionalDirectories", "systemPrompt", "fork", "archive", "status", "title")
_PROMPT = ("image", "audio", "embeddedContext")
_MCP = ("http", "acp")


class UntranslatableServerError(Exception):
    """An MCP server of a type that the other version does not have. `field` is its path, `problem` the reason."""

    def __init__(self, field: str, problem: str) -> None:
        self.field = field
        self.problem = problem
        super().__init__(f"{field}: {problem}")


def initialize_to_v1(params: Object) -> Object:
    """Return a version 2 client's `initialize` for a version 1 agent, with everything that the translation can show."""
    params, carried = split_carried(params, OF_V1)
    offered = as_object(params.get("capabilities"))
    capabilities = carried.get("clientCapabilities")
    if capabilities is None:
        supported: Object = {
            "session": {"notices": {}, "compaction": {}, "configOptions": {"boolean": {}}},
            "plan": {},
            "subagents": {},
            "auth": {"terminal": isinstance(as_object(offered.get("auth")).get("terminal"), dict)},
        }
        if isinstance(offered.get("elicitation"), dict):
            supported["elicitation"] = offered["elicitation"]
        capabilities = carry(supported, OF_V2, {"capabilities": offered})
    else:
        capabilities = without(as_object(capabilities), "fs", "terminal")  # version 2 has no methods for them
    translated = without(params, "info", "capabilities")
    info = {"clientInfo": params["info"]} if params.get("info") not in (None, UNNAMED) else {}
    return {**translated, "protocolVersion": 1, "clientCapabilities": capabilities, **info}


def initialize_to_v2(params: Object) -> Object:
    """Return a version 1 client's `initialize` for a version 2 agent."""
    offered = as_object(params.get("clientCapabilities"))
    offered, carried = split_carried(offered, OF_V2)
    capabilities = carried.get("capabilities")
    translated = without(params, "clientInfo", "clientCapabilities")
    if capabilities is None:
        capabilities = {}
        if as_object(offered.get("auth")).get("terminal") is True:
            capabilities["auth"] = {"terminal": {}}
        if isinstance(offered.get("elicitation"), dict):
            capabilities["elicitation"] = offered["elicitation"]
        translated = carry(translated, OF_V1, {"clientCapabilities": offered})
    info = params.get("clientInfo") or UNNAMED
    return {**translated, "protocolVersion": 2, "info": info, "capabilities": capabilities}


def initialized_to_v2(result: Object) -> Object:
    """Return a version 1 agent's response to `initialize` for a version 2 client."""
    offered, carried = split_carried(as_object(result.get("agentCapabilities")), OF_V2)
    translated = without(result, "agentInfo", "agentCapabilities", "authMethods")
    capabilities = carried.get("capabilities")
    if capabilities is None:
        capabilities = _capabilities_to_v2(offered)
        translated = carry(translated, OF_V1, {"agentCapabilities": offered})
    methods = [method_to_v2(each) for each in objects_in(result.get("authMethods"))]
    methods += objects_in(carried.get("authMethods"))
    methods_field = {"authMethods": methods} if methods else {}
    return {
        **translated,
        "protocolVersion": 2,
        "info": result.get("agentInfo") or UNNAMED,
        "capabilities": capabilities,
        **methods_field,
    }


def _capabilities_to_v2(offered: Object) -> Object:
    session: Object = {
        name: each
        for name in _SHARED_SESSION
        if isinstance(each := as_object(offered.get("sessionCapabilities")).get(name), dict)
    }
    prompt: Object = {name: {} for name in _PROMPT if as_object(offered.get("promptCapabilities")).get(name) is True}
    mcp: Object = {name: {} for name in _MCP if as_object(offered.get("mcpCapabilities")).get(name) is True}
    translated: Object = {"session": {**({"prompt": prompt} if prompt else {}), "mcp": {"stdio": {}, **mcp}, **session}}
    auth = without(as_object(offered.get("auth")), "logout")
    if auth:
        translated["auth"] = auth
    if isinstance(offered.get("providers"), dict):
        translated["providers"] = offered["providers"]
    return translated


def initialized_to_v1(result: Object) -> Object:
    """Return a version 2 agent's response to `initialize` for a version 1 client."""
    result, carried = split_carried(result, OF_V1)
    offered = as_object(result.get("capabilities"))
    methods = objects_in(result.get("authMethods"))
    known = [each for each in methods if each.get("type") in ("agent", "terminal")]
    capabilities = carried.get("agentCapabilities")
    if capabilities is None:
        other = [each for each in methods if each not in known]
        kept: Object = {"capabilities": offered} | ({"authMethods": other} if other else {})
        capabilities = carry(_capabilities_to_v1(offered, has_login=bool(methods)), OF_V2, kept)
    elif isinstance(as_object(capabilities).get("mcpCapabilities"), dict):  # version 2 has no servers over SSE
        capabilities = {**capabilities, "mcpCapabilities": without(capabilities["mcpCapabilities"], "sse")}
    translated = without(result, "info", "capabilities", "authMethods")
    info = {"agentInfo": result["info"]} if result.get("info") not in (None, UNNAMED) else {}
    methods_field = {"authMethods": [method_to_v1(each) for each in known]} if methods else {}
    return {**translated, "protocolVersion": 1, "agentCapabilities": capabilities, **info, **methods_field}


def _capabilities_to_v1(offered: Object, *, has_login: bool) -> Object:
    if not isinstance(offered.get("session"), dict):
        return {"auth": {"logout": {}}} if has_login else {}
    session = as_object(offered["session"])
    prompt, mcp = as_object(session.get("prompt")), as_object(session.get("mcp"))
    translated: Object = {
        "loadSession": True,
        "promptCapabilities": {name: isinstance(prompt.get(name), dict) for name in _PROMPT},
        "mcpCapabilities": {name: isinstance(mcp.get(name), dict) for name in _MCP} | {"sse": False},
        "sessionCapabilities": {"list": {}, "resume": {}, "close": {}}
        | {name: session[name] for name in _SHARED_SESSION if isinstance(session.get(name), dict)},
        "auth": as_object(offered.get("auth")) | ({"logout": {}} if has_login else {}),
    }
    if isinstance(offered.get("providers"), dict):
        translated["providers"] = offered["providers"]
    return translated


def method_to_v2(method: Object) -> Object:
    """Return a version 1 authentication method as a version 2 method."""
    translated = rename({"type": "agent", **method}, "id", "methodId")
    if isinstance(translated.get("env"), dict):
        translated["env"] = [{"name": name, "value": value} for name, value in as_object(translated["env"]).items()]
    return translated


def method_to_v1(method: Object) -> Object:
    """Return a version 2 authentication method as a version 1 method."""
    translated = rename(method, "methodId", "id")
    if translated.get("type") == "agent":
        return without(translated, "type")
    if isinstance(translated.get("env"), list):
        translated["env"] = {str(each.get("name")): str(each.get("value")) for each in objects_in(translated["env"])}
    return translated


def setup_to_v1(params: Object) -> Object:
    """Return the parameters of new, resume or fork for a version 1 agent. Raises UntranslatableServerError."""
    servers = objects_in(params.get("mcpServers"))
    return {**params, "mcpServers": [_server_to_v1(each, index) for index, each in enumerate(servers)]}


def setup_to_v2(params: Object) -> Object:
    """Return the parameters of new, load, resume or fork for a version 2 agent. Raises UntranslatableServerError."""
    if not isinstance(params.get("mcpServers"), list):
        return params
    servers = objects_in(params["mcpServers"])
    return {**params, "mcpServers": [_server_to_v2(each, index) for index, each in enumerate(servers)]}


def _server_to_v1(server: Object, index: int) -> Object:
    match server.get("type"):
        case "stdio":
            bare = without(server, "type")
            return {**bare, "args": bare.get("args") or [], "env": bare.get("env") or []}
        case "http":
            return {**server, "headers": server.get("headers") or []}
        case "acp":
            return server
        case other:
            raise UntranslatableServerError(
                f"params.mcpServers[{index}].type", f"the agent speaks ACP 1, which has no {other!r}"
            )


def _server_to_v2(server: Object, index: int) -> Object:
    if server.get("type") == "sse":
        field = f"params.mcpServers[{index}].type"
        raise UntranslatableServerError(field, "the agent speaks ACP 2, which has no servers over SSE")
    return server if server.get("type") in ("http", "acp") else {"type": "stdio", **server}


def state_to_v1(state: Json) -> Json:
    """Return a subagent's state as in version 1. Background work is carried."""
    if not isinstance(state, dict):
        return state
    restored = restore(as_object(state), OF_V1)
    carried = {"background": restored["background"]} if restored.get("background") is not None else {}
    return carry(without(restored, "background"), OF_V2, carried)
