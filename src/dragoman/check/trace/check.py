"""From a recorded conversation to a report."""

import os
from collections.abc import Sequence

from dragoman.check.conclude import conclude
from dragoman.check.finding import Report, summarize
from dragoman.check.judge import Judge
from dragoman.check.rule import Role
from dragoman.check.trace.trace import read_trace


def check_trace(path: str | os.PathLike[str], roles: Sequence[Role] = ("agent", "client")) -> Report:
    """Judge what was recorded. Raises TraceUnreadable."""
    judges: list[Judge] = []
    for conversation in read_trace(path).conversations:
        judge = Judge(conversation, roles=roles)
        for entry in conversation.entries:
            judge.see(entry)
        judge.end()
        judges.append(judge)
    results = [result for role in roles for result in conclude(judges, role)]
    return Report(roles[0], results, summarize(results))
