from tests.check.judge.cases.case import Case
from tests.check.judge.talking import prompt, session, update

OPEN = [*session(), prompt()]


def plan(**entry: object) -> object:
    return update("plan", entries=[{"content": "Look", "priority": "high", "status": "pending"} | entry])


CASES = [Case("ACP-PLAN-001", [*OPEN, plan(priority="urgent")], [*OPEN, plan()])]
