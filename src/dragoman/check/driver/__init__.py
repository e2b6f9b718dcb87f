"""The checker as a client, which drives an agent through situations that the judge observes."""

from dragoman.check.driver.options import AgentOptions, InvalidScriptError, ScriptTurn, read_script
from dragoman.check.driver.run import check_agent

__all__ = ["AgentOptions", "InvalidScriptError", "ScriptTurn", "check_agent", "read_script"]
