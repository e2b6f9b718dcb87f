"""The public names, pinned: adding or removing one is a decision."""

from importlib import import_module

import pytest

PUBLIC = {
    "dragoman.agent": ["Agent"],
    "dragoman.client": [
        "Asked",
        "Asking",
        "BadDirectory",
        "BadRule",
        "CancelIgnored",
        "CommandsChanged",
        "ConnectFailed",
        "Content",
        "Decision",
        "Deed",
        "Done",
        "Elicit",
        "Elicitation",
        "Event",
        "Foreign",
        "MissingCapability",
        "ModeChanged",
        "NeedsLogin",
        "NotAnAgent",
        "NotOffered",
        "OptionsChanged",
        "Other",
        "PlanChanged",
        "Policy",
        "PromptRunning",
        "Provision",
        "Question",
        "Read",
        "Refused",
        "RemoteAgent",
        "Reply",
        "Rule",
        "Run",
        "Session",
        "SessionClosed",
        "Sessions",
        "Several",
        "StartTimeout",
        "SyncAgent",
        "SyncSession",
        "Text",
        "Thought",
        "TitleChanged",
        "ToolCallState",
        "ToolChanged",
        "Turn",
        "TurnStopped",
        "UsageChanged",
        "UserText",
        "Write",
        "WrongVersion",
        "accept",
        "allow_all",
        "allow_reads",
        "ask",
        "connect",
        "connect_sync",
        "decline",
        "deny_all",
        "launch",
        "rules",
    ],
    "dragoman.files": [
        "BadPath",
        "Boundary",
        "Entry",
        "FileIdentity",
        "FileProblem",
        "Found",
        "Kind",
        "NotAFile",
        "NotText",
        "OutsideBoundary",
        "PathError",
        "Place",
        "TooLarge",
        "open_outside",
        "read_outside",
    ],
    "dragoman.proc": ["EVERYTHING", "INHERITED", "STDIN_GRACE_S", "TERM_GRACE_S", "Child", "Exit", "Supervisor"],
    "dragoman.testing": ["ScriptedAgent", "ScriptedClient", "dump_turns", "load_turns", "steps"],
    "dragoman.store": [
        "KINDS",
        "PAGE_SESSIONS",
        "Damage",
        "FileStore",
        "Header",
        "Log",
        "Page",
        "Record",
        "Store",
        "Summary",
        "encode_cwd",
        "is_same_directory",
        "raise_fd_limit",
    ],
    "dragoman.wire": [
        "HEADS",
        "MAX_IN_FLIGHT",
        "MAX_LINE_BYTES",
        "MAX_NESTING",
        "ErrorObject",
        "Handler",
        "IncomingRequest",
        "LineSplitter",
        "Malformed",
        "MemoryTransport",
        "Message",
        "Oversized",
        "Peer",
        "Receiver",
        "Shortcut",
        "StdioTransport",
        "Transport",
        "memory_pair",
        "parse",
        "take_stdio",
    ],
}


@pytest.mark.parametrize("module", PUBLIC)
def test_the_public_names_of_a_module_are_these(module):
    assert sorted(import_module(module).__all__) == sorted(PUBLIC[module])


@pytest.mark.parametrize("module", PUBLIC)
def test_each_public_name_is_there(module):
    assert all(hasattr(import_module(module), name) for name in PUBLIC[module])


def test_the_tree_of_errors_in_the_docstring_is_the_tree_of_errors():
    errors = import_module("dragoman.errors")
    ours = {name for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, Exception)}
    assert all(name in errors.__doc__ for name in ours)
