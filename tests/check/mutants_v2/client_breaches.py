"""For each rule on clients that only version 2 has, what the clean client does to break it, and where that shows."""

from typing import NamedTuple

from tests.check.mutants.client_breaches import ask_more, block
from tests.check.mutants.edits import drop, put
from tests.check.mutants.peer import Breach, Lines, override


class ClientMutant(NamedTuple):
    """A breach, and the part of the adversary in which it shows."""

    breach: Breach
    part: str = "v2-surprises"


BREACHES: dict[str, ClientMutant] = {
    "ACP-INIT-108": ClientMutant(Lines("request initialize", drop("params", "info"))),
    "ACP-RESUME-102": ClientMutant(Lines("request session/resume", put(cwd="/")), "v2-offers-all"),
    "ACP-PROMPT-104": ClientMutant(Lines("request session/prompt", put(prompt=[]))),
    "ACP-TOOL-101": ClientMutant(override(do_more=ask_more("tool_call/cancel", toolCallId="another")), "v2-offers"),
    "ACP-TERM-108": ClientMutant(override(do_more=ask_more("terminal/cancel", terminalId="another")), "v2-offers"),
    "ACP-EXT-106": ClientMutant(Lines("request session/prompt", block(0, type="words"))),
}
