"""One client's conversation with a scripted server, independent of the transport. Each call runs in its own thread."""

import json
import threading

from tests.mcp.servers import faults
from tests.mcp.servers.offers import (
    NoSuchThing,
    Tools,
    complete,
    get_prompt,
    list_prompts,
    list_resources,
    read_resource,
    result_of,
)
from tests.mcp.servers.options import LIFETIME_S

METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602

PLACES = {"initialize": "initialize", "tools/list": "list", "tools/call": "call"}


class Cancelled(Exception):
    """The client no longer wants this answer."""


class Conversation:
    """A server with one client. `receive` returns immediately. The carrier sends the messages, from any thread.

    A carrier has `send(message, about)` and `send_half`. `about` is the id of the client's request that the message
    belongs to, or None.
    """

    def __init__(self, options, carrier):
        self._options = options
        self._send = carrier.send
        self._send_half = carrier.send_half
        self._tools = Tools(options)
        self._changed = threading.Condition()
        self._running = set()
        self._answers = {}
        self._asked = 0
        self._subscribed = set()

    def receive(self, message):
        """Process one message from the client."""
        method, request_id = message.get("method"), message.get("id")
        is_request = method is not None and request_id is not None
        if is_request:
            with self._changed:
                self._running.add(request_id)
        if self._options.record:
            _append(self._options.record, message)
        if method is None:
            self._receive_answer(message)
        elif method == "notifications/cancelled":
            self._cancel(message["params"])
        elif is_request:
            threading.Thread(target=self._answer, args=(message,), daemon=True).start()

    def _answer(self, message):
        request_id, method, params = message["id"], message["method"], message.get("params") or {}
        options = self._options
        try:
            options = self._options_of(method, params)
            self._suffer(options, PLACES.get(method), request_id)
            answer = self._respond(method, params, options, request_id)
        except Cancelled:
            return
        except NoSuchThing as thing:
            answer = {"error": {"code": INVALID_PARAMS, "message": str(thing)}}
        if not self._finish(request_id) or answer is None:
            return
        response = {"jsonrpc": "2.0", "id": request_id, **answer}
        if method == "tools/call":
            self._answer_call(response, options)
        else:
            self._send(response, request_id)

    def _answer_call(self, response, options):
        if faults.is_due(options, "answer"):
            self._send_half(response, response["id"])
            faults.crash(options)
        if options.list_changed_in_call:
            self._add_tool()
        if options.resource_changes in self._subscribed:
            changed = {"uri": options.resource_changes}
            self._send({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": changed}, None)
        self._send(response, response["id"])
        if options.list_changed_after_call:
            self._add_tool()

    def _add_tool(self):
        self._tools.add()
        self._send({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}, None)

    def _options_of(self, method, params):
        return self._tools.options_of(params["name"]) if method == "tools/call" else self._options

    def _suffer(self, options, place, request_id):
        """Wait, crash or hang if configured for this place."""
        if place is None:
            return
        self._wait(request_id, options.delay_at(place))
        faults.crash_if_due(options, place)
        if options.hang_at == place:
            self._wait(request_id, LIFETIME_S)

    def _respond(self, method, params, options, request_id):
        match method:
            case "initialize":
                return {"result": self._introduce(params)}
            case "ping" | "logging/setLevel":
                return {"result": {}}
            case "tools/list":
                return {"result": self._tools.page(params.get("cursor"))}
            case "tools/call":
                return {"result": self._call(params, options, request_id)}
            case "prompts/list" if options.prompts:
                return {"result": list_prompts(options)}
            case "prompts/get" if options.prompts:
                return {"result": get_prompt(options, params["name"], params.get("arguments") or {})}
            case _ if options.resources and method.startswith(("resources/", "completion/")):
                return {"result": self._respond_about_resources(method, params, options)}
            case _ if options.ignore_unknown_methods:
                return None
            case _:
                return {"error": {"code": METHOD_NOT_FOUND, "message": f"no such method: {method}"}}

    def _respond_about_resources(self, method, params, options):
        match method:
            case "resources/list":
                return list_resources(options)
            case "resources/templates/list":
                return {"resourceTemplates": options.templates}
            case "resources/read":
                return read_resource(options, params["uri"])
            case "completion/complete":
                return complete(options, params["argument"])
            case _:
                self._subscribed ^= {params["uri"]}
                return {}

    def _introduce(self, params):
        options = self._options
        capabilities = {"tools": {"listChanged": True}, "logging": {}}
        if options.prompts:
            capabilities["prompts"] = {}
        if options.resources:
            capabilities["resources"] = {"subscribe": True}
        if options.completions:
            capabilities["completions"] = {}
        introduction = {
            "protocolVersion": options.protocol_version or params["protocolVersion"],
            "capabilities": capabilities,
            "serverInfo": {"name": options.name, "version": options.version},
        }
        return {**introduction, "instructions": options.instructions} if options.instructions else introduction

    def _call(self, params, options, request_id):
        for log in options.log:
            self._notify("notifications/message", {"level": "info", **log}, request_id)
        token = params.get("_meta", {}).get("progressToken")
        if token is not None:
            self._report(token, options.progress, request_id)
        answers = []
        if options.elicit:
            answers.append({"elicit": self._ask("elicitation/create", options.elicit, request_id)})
        if options.sample:
            answers.append({"sample": self._ask("sampling/createMessage", options.sample, request_id)})
        if options.roots:
            answers.append({"roots": self._ask("roots/list", {}, request_id)})
        return result_of(options, params.get("arguments") or {}, answers)

    def _report(self, token, steps, request_id):
        for step in range(1, steps + 1):
            progress = {"progressToken": token, "progress": step, "total": steps, "message": f"step {step}"}
            self._notify("notifications/progress", progress, request_id)

    def _notify(self, method, params, request_id):
        self._send({"jsonrpc": "2.0", "method": method, "params": params}, request_id)

    def _ask(self, method, params, request_id):
        """Send a request to the client and return its result or error."""
        with self._changed:
            self._asked += 1
            own_id = f"ask-{self._asked}" if self._options.string_ids else self._asked
        self._send({"jsonrpc": "2.0", "id": own_id, "method": method, "params": params}, request_id)
        with self._changed:
            self._changed.wait_for(lambda: own_id in self._answers or request_id not in self._running)
            if own_id not in self._answers:
                raise Cancelled
            return self._answers.pop(own_id)

    def _receive_answer(self, message):
        with self._changed:
            self._answers[message["id"]] = {key: message[key] for key in ("result", "error") if key in message}
            self._changed.notify_all()

    def _wait(self, request_id, seconds):
        with self._changed:
            if self._changed.wait_for(lambda: request_id not in self._running, seconds):
                raise Cancelled

    def _cancel(self, params):
        if self._finish(params["requestId"]) and self._options.cancel_file:
            _append(self._options.cancel_file, params)

    def _finish(self, request_id):
        """Return whether the request was still wanted, and mark it as answered."""
        with self._changed:
            wanted = request_id in self._running
            self._running.discard(request_id)
            self._changed.notify_all()
            return wanted


def _append(path, message):
    with open(path, "a") as file:
        file.write(json.dumps(message) + "\n")
