"""A hand-written modern server over stdio: `python -I -S modern.py '{"versions": ["2026-07-28"]}'`.

    versions      the versions listed by `server/discover`, default 2026-07-28
    refuse        refuse every version with the error of the protocol, which lists `versions`
    dies          exit at `server/discover`, like servers that only accept `initialize` as the first message
    ttl_ms        how long a list stays valid. Each list has one more tool than the last: `later_1`, `later_2`, …
    record        a file for one line of JSON per received message

Tools: `ask` requests a name, a sampled text and the roots before it answers. `wait` must be called three times. `work`
runs as a task that requests a name. `fail` is a task that fails. `endless` is a task that never ends.
"""

import json
import sys

VERSION = "2026-07-28"
QUESTION = {
    "method": "elicitation/create",
    "params": {
        "mode": "form",
        "message": "Who?",
        "requestedSchema": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "age": {"type": "integer", "default": 7}},
        },
    },
}
SAMPLING = {
    "method": "sampling/createMessage",
    "params": {"messages": [{"role": "user", "content": {"type": "text", "text": "Hm?"}}], "maxTokens": 10},
}
TASKS = {}


def text(words):
    return {"resultType": "complete", "content": [{"type": "text", "text": words}]}


def task(status, **more):
    return {"taskId": "t1", "status": status, "createdAt": "", "lastUpdatedAt": "", "ttlMs": None, **more}


def call(name, params):
    answers = params.get("inputResponses", {})
    match name:
        case "ask" if answers:
            return text(json.dumps({"answers": answers, "state": params.get("requestState")}))
        case "ask":
            wanted = {"who": QUESTION, "what": SAMPLING, "where": {"method": "roots/list", "params": {}}}
            return {"resultType": "input_required", "inputRequests": wanted, "requestState": "opaque"}
        case "wait":
            asked = int(params.get("requestState", "0")) + 1
            return text("at last") if asked == 3 else {"resultType": "input_required", "requestState": str(asked)}
        case _:
            TASKS.update(tool=name, answers=None)
            return {"resultType": "task", **task("working", pollIntervalMs=50)}


def look():
    match TASKS["tool"]:
        case "work" if TASKS["answers"] is None:
            return task("input_required", inputRequests={"who": QUESTION}, pollIntervalMs=50)
        case "work":
            return task("completed", result={"content": text(json.dumps(TASKS["answers"]))["content"]})
        case "fail":
            return task("failed", error={"code": -32603, "message": "the crane broke"})
        case _:
            return task("working", pollIntervalMs=50)


def respond(method, params, options):
    meta = params.get("_meta", {})
    if options.get("refuse") or meta.get("io.modelcontextprotocol/protocolVersion") != VERSION:
        supported = options.get("versions", [VERSION])
        return {"error": {"code": -32022, "message": "no such version", "data": {"supported": supported}}}
    match method:
        case "server/discover":
            told = {"supportedVersions": options.get("versions", [VERSION]), "capabilities": {"tools": {}}}
            return {"result": {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", **told}}
        case "tools/list":
            tools = [{"name": name, "inputSchema": {"type": "object"}} for name in ("ask", "wait", "work", "fail")]
            tools.append({"name": "endless", "inputSchema": {"type": "object"}})
            if options.get("ttl_ms"):
                TASKS["lists"] = TASKS.get("lists", -1) + 1
                tools += [{"name": f"later_{n + 1}", "inputSchema": {"type": "object"}} for n in range(TASKS["lists"])]
            ttl_ms = options.get("ttl_ms", 0)
            return {"result": {"resultType": "complete", "tools": tools, "ttlMs": ttl_ms, "cacheScope": "private"}}
        case "tools/call":
            return {"result": call(params["name"], params)}
        case "tasks/get":
            return {"result": {"resultType": "complete", **look()}}
        case "tasks/update":
            TASKS["answers"] = params["inputResponses"]
            return {"result": {"resultType": "complete"}}
        case "tasks/cancel":
            return {"result": {"resultType": "complete"}}
        case _:
            return {"error": {"code": -32601, "message": "Method not found"}}


def legacy(method, message):
    """Answer like a server that knows the handshake and no earlier method."""
    if method == "initialize":
        version = message["params"]["protocolVersion"]
        return {"result": {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": {"name": "old"}}}
    return {"result": {"tools": []}}


def main():
    options = json.loads(sys.argv[1]) if len(sys.argv) > 1 else {}
    for line in sys.stdin:
        message = json.loads(line)
        method = message.get("method")
        if options.get("record"):
            with open(options["record"], "a") as file:
                file.write(line)
        if "id" not in message:
            continue
        if options.get("dies") and method == "server/discover":
            sys.exit("expected initialize")
        params = message.get("params", {})
        answer = legacy(method, message) if options.get("dies") else respond(method, params, options)
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)


main()
