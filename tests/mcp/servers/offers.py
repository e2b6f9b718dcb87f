"""The offers of a scripted server: its tools with their call options, the pages of the list, and its prompts."""

import json
import os

TEXT_SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}}

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
SILENCE = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="

CONTENT = {
    "text": {"type": "text", "text": "a text"},
    "image": {"type": "image", "data": PIXEL, "mimeType": "image/png"},
    "audio": {"type": "audio", "data": SILENCE, "mimeType": "audio/wav"},
    "resource": {
        "type": "resource",
        "resource": {"uri": "memo:///note", "mimeType": "text/plain", "text": "an embedded note"},
    },
    "blob": {"type": "resource", "resource": {"uri": "memo:///pixel", "mimeType": "image/png", "blob": PIXEL}},
    "resource_link": {
        "type": "resource_link",
        "uri": "memo:///linked",
        "name": "linked",
        "mimeType": "text/plain",
        "size": 12,
    },
    "structured": {"type": "text", "text": '{"degrees": 21}'},
    "error": {"type": "text", "text": "it did not work"},
}
STRUCTURED = {"degrees": 21}
STRUCTURED_SCHEMA = {"type": "object", "properties": {"degrees": {"type": "number"}}, "required": ["degrees"]}


class NoSuchThing(Exception):
    """The client requested something that is not offered."""


class Tools:
    """The tools of a server in order. More can be added."""

    def __init__(self, options):
        given = [_plain("echo")] if options.tools is None else options.tools
        self._options = options
        self._tools = [*given, *_content_tools(options), *_many(options.tool_count)]
        self._added = 0

    def page(self, cursor):
        """Return the result of one `tools/list`."""
        start, turn = _read_cursor(cursor)
        size = self._options.page_size or max(len(self._tools), 1)
        shown = [_shown(tool) for tool in self._tools[start : start + size]]
        if start + size < len(self._tools):
            return {"tools": shown, "nextCursor": f"{start + size}/{turn}"}
        return {"tools": shown, "nextCursor": f"0/{turn + 1}"} if self._options.endless_cursor else {"tools": shown}

    def options_of(self, name):
        """Return the options for a call of this tool."""
        for tool in self._tools:
            if tool["name"] == name:
                return self._options.with_more(tool.get("does", {}))
        raise NoSuchThing(f"no such tool: {name}")

    def add(self):
        """Add one more tool."""
        self._added += 1
        self._tools.append(_plain(f"added_{self._added}"))


def _plain(name):
    return {"name": name, "description": f"Answers what it was given ({name})", "inputSchema": TEXT_SCHEMA}


def _shown(tool):
    return {"inputSchema": {"type": "object"}, **{key: value for key, value in tool.items() if key != "does"}}


def _content_tools(options):
    if not options.content_tools:
        return []
    tools = [{**_plain(kind), "does": {"returns": [kind]}} for kind in CONTENT]
    for tool in tools:
        if tool["name"] == "structured":
            tool["outputSchema"] = STRUCTURED_SCHEMA
    return tools


def _many(count):
    return [_plain(f"tool_{number:05}") for number in range(count)]


def _read_cursor(cursor):
    try:
        start, turn = (cursor or "0/0").split("/")
        return int(start), int(turn)
    except ValueError:
        raise NoSuchThing(f"no such cursor: {cursor}") from None


def result_of(options, arguments, answers):
    """Return the result of a call: as configured, or the arguments."""
    content = [_text(json.dumps(answer)) for answer in answers]
    if options.echo_env:
        content.append(_text(json.dumps(_surroundings(options.echo_env))))
    if options.result_bytes is not None:
        content.append(_text("x" * options.result_bytes))
    kinds = options.returns or []
    content += [CONTENT[kind] for kind in kinds]
    if options.text is not None or not content:
        content.append(_text(options.text or str(arguments.get("text", json.dumps(arguments)))))
    result = {"content": content, "isError": "error" in kinds}
    return {**result, "structuredContent": STRUCTURED} if "structured" in kinds else result


def _text(text):
    return {"type": "text", "text": text}


def _surroundings(names):
    env = dict(os.environ) if names is True else {name: os.environ[name] for name in names if name in os.environ}
    return {"pid": os.getpid(), "cwd": os.getcwd(), "env": env}


def list_prompts(options):
    """Return the result of `prompts/list`."""
    return {"prompts": [{key: value for key, value in prompt.items() if key != "text"} for prompt in options.prompts]}


def get_prompt(options, name, arguments):
    """Return the result of `prompts/get`, with the arguments in the text."""
    for prompt in options.prompts:
        if prompt["name"] == name:
            return {"messages": [{"role": "user", "content": _text(_filled(prompt, arguments))}]}
    raise NoSuchThing(f"no such prompt: {name}")


def _filled(prompt, arguments):
    text = prompt.get("text", prompt["name"])
    for argument in prompt.get("arguments", []):
        name = argument["name"]
        if argument.get("required") and name not in arguments:
            raise NoSuchThing(f"no such argument given: {name}")
        text = text.replace("{" + name + "}", arguments.get(name, ""))
    return text


def list_resources(options):
    """Return the result of `resources/list`."""
    return {"resources": [{key: each[key] for key in each if key != "text"} for each in options.resources]}


def read_resource(options, uri):
    """Return the result of `resources/read`. For a URI of a template it is the URI."""
    texts = {each["uri"]: each.get("text", "") for each in options.resources}
    begins = tuple(each["uriTemplate"].partition("{")[0] for each in options.templates)
    if uri not in texts and not uri.startswith(begins):
        raise NoSuchThing(f"no such resource: {uri}")
    return {"contents": [{"uri": uri, "mimeType": "text/plain", "text": texts.get(uri, uri)}]}


def complete(options, argument):
    """Return the result of `completion/complete`."""
    values = options.completions.get(argument["name"], [])
    return {"completion": {"values": [each for each in values if each.startswith(argument["value"])]}}
