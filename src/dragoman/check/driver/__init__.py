"""The checker as a client, which drives an agent into situations for the judge to see."""

from dragoman.check.driver.options import Options
from dragoman.check.driver.run import check_agent
from dragoman.check.driver.script import BadScript, Turn, read_script

__all__ = ["BadScript", "Options", "Turn", "check_agent", "read_script"]
