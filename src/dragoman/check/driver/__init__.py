"""The checker as a client, which drives an agent into situations for the judge to see."""

from dragoman.check.driver.options import AgentOptions, BadScript, ScriptTurn, read_script
from dragoman.check.driver.run import check_agent

__all__ = ["AgentOptions", "BadScript", "Options", "ScriptTurn", "Turn", "check_agent", "read_script"]

# Former names, which scripts of users import.
Options = AgentOptions
Turn = ScriptTurn
