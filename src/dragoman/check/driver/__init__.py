"""The checker as a client, which drives an agent into situations for the judge to see."""

from dragoman.check.driver.options import BadScript, Options, Turn, read_script
from dragoman.check.driver.run import check_agent

__all__ = ["BadScript", "Options", "Turn", "check_agent", "read_script"]
