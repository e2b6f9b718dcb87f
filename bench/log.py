"""The cost of the session log: 50,000 chunks from the real agent, with its log and with a log that stores nothing.

The bench agent, which has no log, model or sessions, shows the speed of the connection.
"""

from bench import commands
from bench.client_run import run_client
from bench.measure import Measure, Target
from bench.pairs import DRAGOMAN_CLIENT
from bench.stream import OPTIONS, read_rate, run_script_agent, script_file

LOGGED = "dragoman agent, log on"
UNLOGGED = "the same without a log"
BARE = "a bare connection"


def run_unlogged_agent() -> float:
    with script_file() as script:
        agent = commands.on_dragoman("unlogged_agent.py", str(script))
        return read_rate(run_client(DRAGOMAN_CLIENT, OPTIONS, agent))


def run_bare_agent() -> float:
    return read_rate(run_client(DRAGOMAN_CLIENT, OPTIONS, commands.on_dragoman("dragoman_agent.py")))


MEASURES = (
    Measure(
        part="log",
        title="50,000 chunks, with and without a log",
        unit="k msg/s",
        contenders={LOGGED: run_script_agent, UNLOGGED: run_unlogged_agent, BARE: run_bare_agent},
        targets=(Target(LOGGED, UNLOGGED, "at least", 0.9),),
        ratios=((LOGGED, BARE),),
        rounds=11,
        quick_rounds=5,
    ),
)
