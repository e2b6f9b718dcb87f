"""Initialisation and session setup: versions, capabilities, authentication methods and MCP servers.

Version 2 says support with an object where version 1 has a boolean, and puts what concerns sessions under `session`.
The capabilities of the other version are carried whole, so that nothing that was advertised is lost on the way.
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
    take_carried,
    without,
)

UNNAMED: Object = {"name": "unknown", "version": "0"}
"""The name of a version 1 peer that does not give one, which version 2 requires."""

_SHARED_SESSION = ("delete", "additionalDirectories", "systemPrompt", "fork", "archive", "status", "title")
_PROMPT = ("image", "audio", "embeddedContext")
_MCP = ("http", "acp")


class UntranslatableServer(Exception):
    """An MCP server of a type that the other version does not have; `field` is its path, `problem` says why."""

    def __init__(self, field: str, problem: str) -> None:
        self.field = field
        self.problem = problem
        super().__init__(f"{field}: {problem}")


def initialize_to_v1(params: Object) -> Object:
    """Return the `initialize` of a version 2 client for a version 1 agent, with all that the translation can show."""
    params, carried = take_carried(params, OF_V1)
    given = as_object(params.get("capabilities"))
    capabilities = carried.get("clientCapabilities")
    if capabilities is None:
        taken: Object = {
            "session": {"notices": {}, "compaction": {}, "configOptions": {"boolean": {}}},
            "plan": {},
            "subagents": {},
            "auth": {"terminal": isinstance(as_object(given.get("auth")).get("terminal"), dict)},
        }
        if isinstance(given.get("elicitation"), dict):
            taken["elicitation"] = given["elicitation"]
        capabilities = carry(taken, OF_V2, {"capabilities": given})
    else:
        capabilities = without(as_object(capabilities), "fs", "terminal")  # version 2 has no methods for them
    made = without(params, "info", "capabilities")
    info = {"clientInfo": params["info"]} if params.get("info") not in (None, UNNAMED) else {}
    return {**made, "protocolVersion": 1, "clientCapabilities": capabilities, **info}


def initialize_to_v2(params: Object) -> Object:
    """Return the `initialize` of a version 1 client for a version 2 agent."""
    given = as_object(params.get("clientCapabilities"))
    given, carried = take_carried(given, OF_V2)
    capabilities = carried.get("capabilities")
    made = without(params, "clientInfo", "clientCapabilities")
    if capabilities is None:
        capabilities = {}
        if as_object(given.get("auth")).get("terminal") is True:
            capabilities["auth"] = {"terminal": {}}
        if isinstance(given.get("elicitation"), dict):
            capabilities["elicitation"] = given["elicitation"]
        made = carry(made, OF_V1, {"clientCapabilities": given})
    info = params.get("clientInfo") or UNNAMED
    return {**made, "protocolVersion": 2, "info": info, "capabilities": capabilities}


def initialized_to_v2(result: Object) -> Object:
    """Return the answer of a version 1 agent to `initialize` for a version 2 client."""
    given, carried = take_carried(as_object(result.get("agentCapabilities")), OF_V2)
    made = without(result, "agentInfo", "agentCapabilities", "authMethods")
    capabilities = carried.get("capabilities")
    if capabilities is None:
        capabilities = _capabilities_to_v2(given)
        made = carry(made, OF_V1, {"agentCapabilities": given})
    methods = [method_to_v2(each) for each in objects_in(result.get("authMethods"))]
    methods += objects_in(carried.get("authMethods"))
    told = {"authMethods": methods} if methods else {}
    return {
        **made,
        "protocolVersion": 2,
        "info": result.get("agentInfo") or UNNAMED,
        "capabilities": capabilities,
        **told,
    }


def _capabilities_to_v2(given: Object) -> Object:
    session: Object = {
        name: each
        for name in _SHARED_SESSION
        if isinstance(each := as_object(given.get("sessionCapabilities")).get(name), dict)
    }
    prompt: Object = {name: {} for name in _PROMPT if as_object(given.get("promptCapabilities")).get(name) is True}
    mcp: Object = {name: {} for name in _MCP if as_object(given.get("mcpCapabilities")).get(name) is True}
    made: Object = {"session": {**({"prompt": prompt} if prompt else {}), "mcp": {"stdio": {}, **mcp}, **session}}
    auth = without(as_object(given.get("auth")), "logout")
    if auth:
        made["auth"] = auth
    if isinstance(given.get("providers"), dict):
        made["providers"] = given["providers"]
    return made


def initialized_to_v1(result: Object) -> Object:
    """Return the answer of a version 2 agent to `initialize` for a version 1 client."""
    result, carried = take_carried(result, OF_V1)
    given = as_object(result.get("capabilities"))
    methods = objects_in(result.get("authMethods"))
    known = [each for each in methods if each.get("type") in ("agent", "terminal")]
    capabilities = carried.get("agentCapabilities")
    if capabilities is None:
        other = [each for each in methods if each not in known]
        kept: Object = {"capabilities": given} | ({"authMethods": other} if other else {})
        capabilities = carry(_capabilities_to_v1(given, has_login=bool(methods)), OF_V2, kept)
    elif isinstance(as_object(capabilities).get("mcpCapabilities"), dict):  # version 2 has no servers over SSE
        capabilities = {**capabilities, "mcpCapabilities": without(capabilities["mcpCapabilities"], "sse")}
    made = without(result, "info", "capabilities", "authMethods")
    info = {"agentInfo": result["info"]} if result.get("info") not in (None, UNNAMED) else {}
    told = {"authMethods": [method_to_v1(each) for each in known]} if methods else {}
    return {**made, "protocolVersion": 1, "agentCapabilities": capabilities, **info, **told}


def _capabilities_to_v1(given: Object, *, has_login: bool) -> Object:
    if not isinstance(given.get("session"), dict):
        return {"auth": {"logout": {}}} if has_login else {}
    session = as_object(given["session"])
    prompt, mcp = as_object(session.get("prompt")), as_object(session.get("mcp"))
    made: Object = {
        "loadSession": True,
        "promptCapabilities": {name: isinstance(prompt.get(name), dict) for name in _PROMPT},
        "mcpCapabilities": {name: isinstance(mcp.get(name), dict) for name in _MCP} | {"sse": False},
        "sessionCapabilities": {"list": {}, "resume": {}, "close": {}}
        | {name: session[name] for name in _SHARED_SESSION if isinstance(session.get(name), dict)},
        "auth": as_object(given.get("auth")) | ({"logout": {}} if has_login else {}),
    }
    if isinstance(given.get("providers"), dict):
        made["providers"] = given["providers"]
    return made


def method_to_v2(method: Object) -> Object:
    """Return an authentication method of version 1 as one of version 2."""
    made = rename({"type": "agent", **method}, "id", "methodId")
    if isinstance(made.get("env"), dict):
        made["env"] = [{"name": name, "value": value} for name, value in as_object(made["env"]).items()]
    return made


def method_to_v1(method: Object) -> Object:
    """Return an authentication method of version 2 as one of version 1."""
    made = rename(method, "methodId", "id")
    if made.get("type") == "agent":
        return without(made, "type")
    if isinstance(made.get("env"), list):
        made["env"] = {str(each.get("name")): str(each.get("value")) for each in objects_in(made["env"])}
    return made


def setup_to_v1(params: Object) -> Object:
    """Return the parameters of new, resume or fork for a version 1 agent; raises UntranslatableServer."""
    servers = objects_in(params.get("mcpServers"))
    return {**params, "mcpServers": [_server_to_v1(each, index) for index, each in enumerate(servers)]}


def setup_to_v2(params: Object) -> Object:
    """Return the parameters of new, load, resume or fork for a version 2 agent; raises UntranslatableServer."""
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
            raise UntranslatableServer(
                f"params.mcpServers[{index}].type", f"the agent speaks ACP 1, which has no {other!r}"
            )


def _server_to_v2(server: Object, index: int) -> Object:
    if server.get("type") == "sse":
        field = f"params.mcpServers[{index}].type"
        raise UntranslatableServer(field, "the agent speaks ACP 2, which has no servers over SSE")
    return server if server.get("type") in ("http", "acp") else {"type": "stdio", **server}


def state_to_v1(state: Json) -> Json:
    """Return the state of a subagent as version 1 has it: background work is carried."""
    if not isinstance(state, dict):
        return state
    given = restore(as_object(state), OF_V1)
    carried = {"background": given["background"]} if given.get("background") is not None else {}
    return carry(without(given, "background"), OF_V2, carried)
