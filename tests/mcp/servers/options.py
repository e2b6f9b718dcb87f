"""What a scripted server can be told to do, as one JSON object. Every option may be left out, and all go together.

Who it is and what it offers:
    name, version, instructions   what `initialize` tells
    protocol_version              answered instead of the version the client asked for
    tools                         tool definitions as in `tools/list`; without it there is one tool, `echo`. A tool may
                                  have `does`: options that hold for calls of this tool only, beside `text`, its answer
    tool_count                    so many tools more: `tool_00000`, `tool_00001`, …
    content_tools                 a tool more for each kind of content: see `returns`
    prompts                       prompt definitions as in `prompts/list`, each with `text`, which may hold `{argument}`
    resources                     resource definitions as in `resources/list`, each with `text`
    templates                     template definitions as in `resources/templates/list`
    completions                   values by argument; those that begin with what was given are answered
    page_size                     tools on one page of `tools/list`
    endless_cursor                every page names a next one, each time by another cursor, and they repeat

In a call, in this order:
    log                           `notifications/message` params to send
    progress                      so many steps to report, if the client gave a token
    elicit                        params of an `elicitation/create` to ask the client
    sample                        params of a `sampling/createMessage` to ask the client
    roots                         ask the client for `roots/list`
    echo_env                      answer with pid, cwd and these variables; all of them for true
    result_bytes                  answer with a text of that size
    returns                       answer with kinds of content: text, image, audio, resource, blob, resource_link,
                                  structured, error
    resource_changes              address of a resource that changes in each call, told to a client that subscribed
    list_changed_in_call          before each answer there is a tool more, `added_1`, `added_2`, …, and a notification
    list_changed_after_call       after each answer there is a tool more, `added_1`, `added_2`, …, and a notification

What is asked of the client comes back in the answer as one JSON text each, `{"roots": {"result": …}}` or `"error"`.

Faults. A place is `start` (before anything is read), `initialize`, `list` (of tools), `call`, or `answer` (half of the
answer to a call is written; a place to crash only):
    delay_s                       seconds before any answer, or an object of seconds by place
    hang_at                       never answer there, until cancelled; at `start` not even the end of stdin is seen
    crash_at                      exit there, with `crash_code` (3; a negative one is a signal) and `crash_stderr`
    crash_once                    a file: crash only if it is not there, and make it
    stderr                        text to write there at the start
    garbage                       kinds of lines before every message: text, blank, binary, half, json
    piece_bytes                   write in pieces of that size, each flushed
    ignore_sigterm, ignore_eof    outlive the signal, or the end of stdin
    fork                          kinds of processes to leave behind, which ignore SIGTERM: child, session, daemon
    fork_and_exit                 go away once started: `serve` leaves a child that serves, `hold` one that only keeps
                                  the pipes open
    ignore_unknown_methods        say nothing at all to a method it does not know
    string_ids                    the server's own requests have strings for ids

For the test to look at:
    pid_file                      every process of the server appends its pid, the server itself first
    cancel_file                   a line of JSON for every running call that the client cancelled
    record                        a line of JSON for every message that came
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
"""Should a test fail, nobody stays for ever."""


class Options:
    """The options of a server, or of one call; a name that is none is refused, for a typo would test nothing."""

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
        """Return these options, with others where they are given."""
        return Options({**self._given, **more})

    def delay_at(self, place):
        """Return how long to wait there, in seconds."""
        if isinstance(self.delay_s, dict):
            return self.delay_s.get(place, 0)
        return 0 if place == "start" else self.delay_s
