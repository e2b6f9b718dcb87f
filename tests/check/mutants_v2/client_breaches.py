"""The changes that make the clean client break the rules that only version 2 has, one for each rule."""

from typing import NamedTuple

from tests.check.mutants.client_breaches import ask_more, block, greet_and_go_on, rename
from tests.check.mutants.edits import drop, set_params
from tests.check.mutants.peer import Breach, Lines, override


class ClientMutant(NamedTuple):
    """A breach, and the adversary's part that exposes it."""

    breach: Breach
    part: str = "v2-surprises"


BREACHES: dict[str, ClientMutant] = {
    "ACP-INIT-101 session/new before the greeting": ClientMutant(override(greet=greet_and_go_on)),
    "ACP-INIT-109": ClientMutant(Lines("request initialize", rename("capabilities", "clientCapabilities"))),
    "ACP-INIT-108": ClientMutant(Lines("request initialize", drop("params", "info"))),
    "ACP-RESUME-102": ClientMutant(Lines("request session/resume", set_params(cwd="/")), "v2-offers-all"),
    "ACP-PROMPT-104": ClientMutant(Lines("request session/prompt", set_params(prompt=[]))),
    "ACP-TOOL-101": ClientMutant(override(do_more=ask_more("tool_call/cancel", toolCallId="another")), "v2-offers"),
    "ACP-TERM-108": ClientMutant(override(do_more=ask_more("terminal/cancel", terminalId="another")), "v2-offers"),
    "ACP-EXT-106": ClientMutant(Lines("request session/prompt", block(0, type="words"))),
}
