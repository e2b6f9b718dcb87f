"""The options of a scripted server, as one JSON object. All are optional and can be combined.

Identity and offers:

    name, version, instructions   fields of the `initialize` result
    protocol_version              answered instead of the requested version
    tools                         tool definitions as in `tools/list`. The default is one tool, `echo`. A tool may have
                                  `does` with options for its calls only, and `text` with its answer
    tool_count                    number of additional tools: `tool_00000`, `tool_00001`, …
    content_tools                 one additional tool per content type, see `returns`
    prompts                       prompt definitions as in `prompts/list`, each with `text` (may contain `{argument}`)
    resources                     resource definitions as in `resources/list`, each with `text`
    templates                     template definitions as in `resources/templates/list`
    completions                   values by argument. Those with the given prefix are answered
    page_size                     tools on one page of `tools/list`
    endless_cursor                every page names a next one with another cursor, and pages repeat

During a call, in this order:

    log                           `notifications/message` params to send
    progress                      number of steps to report, if the client sent a token
    elicit                        params of an `elicitation/create` to send to the client
    sample                        params of a `sampling/createMessage` to send to the client
    roots                         send `roots/list` to the client
    echo_env                      answer with pid, cwd and these variables, or all of them for true
    result_bytes                  answer with a text of that size
    returns                       answer with these content types: text, image, audio, resource, blob, resource_link,
                                  structured, error
    resource_changes              URI of a resource that changes in each call, reported to a subscribed client
    list_changed_in_call          add a tool `added_1`, `added_2`, … before each answer, with a notification
    list_changed_after_call       add a tool `added_1`, `added_2`, … after each answer, with a notification

The client's responses are returned in the answer as one JSON text each, `{"roots": {"result": …}}` or `"error"`.

Faults. A place is `start` (before anything is read), `initialize`, `list` (of tools), `call`, or `answer` (half of a
call's answer is written, only for crashes):

    delay_s                       seconds before any answer, or an object of seconds by place
    hang_at                       never answer there, until cancelled. At `start` even the end of stdin is ignored
    crash_at                      exit there, with `crash_code` (default 3, negative for a signal) and `crash_stderr`
    crash_once                    a file: crash only if it does not exist, and create it
    stderr                        text to write to stderr at the start
    garbage                       kinds of lines before every message: text, blank, binary, half, json
    piece_bytes                   write in pieces of that size, each flushed
    ignore_sigterm, ignore_eof    survive the signal, or the end of stdin
    fork                          kinds of processes to leave behind, which ignore SIGTERM: child, session, daemon
    fork_and_exit                 exit after the start: `serve` leaves a child that serves, `hold` one that only keeps
                                  the pipes open
    ignore_unknown_methods        do not answer unknown methods
    string_ids                    use strings as ids of the server's requests

Records for the test:

    pid_file                      every process of the server appends its pid, the server first
    cancel_file                   one line of JSON per running call that the client cancelled
    record                        one line of JSON per received message
"""

DEFAULTS = {
    "name": "scripted",
    "version": "1",
    "instructions": None,
    "protocol_version": None,
    "tools": None,
    "tool_count": 0,
    "content_tools": False,
    "prompts": [],
    "resources": [],
    "templates": [],
    "completions": {},
    "resource_changes": None,
    "page_size": None,
    "endless_cursor": False,
    "log": [],
    "progress": 0,
    "elicit": None,
    "sample": None,
    "roots": False,
    "echo_env": None,
    "result_bytes": None,
    "returns": None,
    "text": None,
    "list_changed_in_call": False,
    "list_changed_after_call": False,
    "delay_s": 0,
    "hang_at": None,
    "crash_at": None,
    "crash_code": 3,
    "crash_stderr": "",
    "crash_once": None,
    "stderr": "",
    "garbage": [],
    "piece_bytes": None,
    "ignore_sigterm": False,
    "ignore_eof": False,
    "fork": [],
    "fork_and_exit": None,
    "ignore_unknown_methods": False,
    "string_ids": False,
    "pid_file": None,
    "cancel_file": None,
    "record": None,
}

PLACES = (None, "start", "initialize", "list", "call", "answer")

LIFETIME_S = 300
"""Ends the server if a test fails."""


class Options:
    """The options of a server, or of one call. An unknown name is refused, because a typo would test nothing."""

    def __init__(self, given):
        unknown = sorted(set(given) - set(DEFAULTS))
        if unknown:
            raise SystemExit(f"no such option: {', '.join(unknown)}")
        self._given = given
        for place in (given.get("hang_at"), given.get("crash_at")):
            if place not in PLACES:
                raise SystemExit(f"no such place: {place}")

    def __getattr__(self, name):
        return self._given.get(name, DEFAULTS[name])

    def with_more(self, more):
        """Return these options, overridden by others."""
        return Options({**self._given, **more})

    def delay_at(self, place):
        """Return the delay at a place, in seconds."""
        if isinstance(self.delay_s, dict):
            return self.delay_s.get(place, 0)
        return 0 if place == "start" else self.delay_s
