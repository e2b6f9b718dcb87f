from tests.check.judge.cases.case import Case
from tests.check.judge.talking import session, update


def offer(*names: str, **fields: object) -> object:
    commands = [{"name": each, "description": each} | fields for each in names]
    return update("available_commands_update", availableCommands=commands)


GOOD = [*session(), offer("web", "test")]

CASES = [
    Case("ACP-CMD-001", [*session(), offer("web", input={"placeholder": "x"})], GOOD),
    Case("ACP-CMD-002", [*session(), offer("web", "web")], GOOD),
    Case("ACP-CMD-003", [*session(), offer("/web")], GOOD),
]
