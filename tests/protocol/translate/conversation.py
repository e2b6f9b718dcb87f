"""Translators between scripted sides. Each sent message is checked against the schema of its version."""

import itertools

from dragoman.protocol.translate import TranslatorForV1Client, TranslatorForV2Client
from tests.protocol.schema_instances import V1, V2

SCHEMAS = {1: V1, 2: V2}


def of_role(schema, suffix):
    return {
        node["x-method"]: name for name, node in schema.defs.items() if "x-method" in node and name.endswith(suffix)
    }


TYPES = {
    version: {suffix: of_role(schema, suffix) for suffix in ("Request", "Response", "Notification")}
    for version, schema in SCHEMAS.items()
}


def counting_ids(prefix):
    numbers = itertools.count(1)
    return lambda: f"{prefix}-{next(numbers)}"


class Judge:
    """Checks each message sent to one side against the schema, and pairs responses with requests."""

    def __init__(self, version):
        self.version = version
        self.messages = []
        self._methods = {}

    def sends(self, message):
        if "method" in message and "id" in message:
            self._methods[str(message["id"])] = message["method"]

    def is_sent(self, messages):
        for message in messages:
            self.messages.append(message)
            self._check(message)

    def _check(self, message):
        if "error" in message:
            name, value = "Error", message["error"]
        elif "method" not in message:
            method = self._methods[str(message["id"])]
            name, value = TYPES[self.version]["Response"].get(method), message["result"]
        else:
            role = "Request" if "id" in message else "Notification"
            name, value = TYPES[self.version][role].get(message["method"]), message.get("params")
            assert name is not None or message["method"].startswith("_"), f"version {self.version} has no {message}"
        if name is not None:
            assert SCHEMAS[self.version].is_valid(name, value), (name, value)

    def pop_messages(self):
        """Return the messages since the last call."""
        taken, self.messages = self.messages, []
        return taken


class Conversation:
    """A client and an agent with one or several translators between them."""

    def __init__(self, *translators):
        versions = [2 if isinstance(each, TranslatorForV2Client) else 1 for each in translators]
        last = 1 if isinstance(translators[-1], TranslatorForV2Client) else 2
        self._translators = translators
        self._sides = [Judge(version) for version in (*versions, last)]
        self.client, self.agent = self._sides[0], self._sides[-1]

    def client_sends(self, *messages):
        for message in messages:
            self._forward(0, message)
        return self

    def agent_sends(self, *messages):
        for message in messages:
            self._backward(len(self._translators) - 1, message)
        return self

    def _forward(self, index, message):
        if index == len(self._translators):
            self._sides[index].is_sent([message])
            return
        self._sides[index].sends(message)
        self._spread(index, self._translators[index].from_client(message))

    def _backward(self, index, message):
        if index < 0:
            self._sides[0].is_sent([message])
            return
        self._sides[index + 1].sends(message)
        self._spread(index, self._translators[index].from_agent(message))

    def _spread(self, index, translated):
        for each in translated.to_client:
            if index:
                self._sides[index].is_sent([each])
            self._backward(index - 1, each)
        for each in translated.to_agent:
            if index + 1 < len(self._translators):
                self._sides[index + 1].is_sent([each])
            self._forward(index + 1, each)


def v2_client_v1_agent():
    return Conversation(TranslatorForV2Client(counting_ids("m")))


def v1_client_v2_agent():
    return Conversation(TranslatorForV1Client(counting_ids("t")))


def through_v2():
    """Connect a client and an agent of version 1 through version 2."""
    return Conversation(TranslatorForV1Client(counting_ids("t")), TranslatorForV2Client(counting_ids("m")))


def through_v1():
    """Connect a client and an agent of version 2 through version 1."""
    return Conversation(TranslatorForV2Client(counting_ids("m")), TranslatorForV1Client(counting_ids("t")))


def call(request_id, method, **params):
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}


def notification(method, **params):
    return {"jsonrpc": "2.0", "method": method, "params": params}


def answer(request_id, value):
    return {"jsonrpc": "2.0", "id": request_id, "result": value}


def fail(request_id, code, message="no", **more):
    return {"jsonrpc": "2.0", "id": request_id, "error": {"code": code, "message": message, **more}}


def updated(**fields):
    return notification("session/update", sessionId="s", update=fields)


def text(words):
    return {"type": "text", "text": words}
