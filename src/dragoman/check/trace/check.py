"""From a recorded conversation to a report."""

import os
from collections.abc import Sequence

from dragoman.check.conclude import conclude
from dragoman.check.conversation import Conversation
from dragoman.check.finding import Report, summarize
from dragoman.check.judge import Judge
from dragoman.check.judge.field import decode_object
from dragoman.check.rule import Role
from dragoman.check.trace.trace import read_trace


def check_trace(path: str | os.PathLike[str], roles: Sequence[Role] = ("agent", "client")) -> Report:
    """Judge what was recorded. Raises TraceUnreadable."""
    judges: list[Judge] = []
    for conversation in read_trace(path).conversations:
        judge = Judge(conversation, roles=roles)
        judge.state.is_from_start = _is_from_start(conversation)
        for entry in conversation.entries:
            judge.see(entry)
        judge.end()
        judges.append(judge)
    results = [result for role in roles for result in conclude(judges, role)]
    return Report(roles[0], results, summarize(results))


def _is_from_start(conversation: Conversation) -> bool:
    """Tell whether nothing can have come before: the client first asks for `initialize`, and has asked nothing else."""
    for entry in conversation.entries:
        fields = decode_object(entry.line)
        if fields is None:
            continue
        is_answer = "method" not in fields
        if entry.sender == "client" and not is_answer:
            return fields["method"] == "initialize"
        if entry.sender == "agent" and is_answer:
            return False
    return False
