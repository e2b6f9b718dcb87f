"""Errors of a bridge itself.

BridgeProblem
├── TooManyViewers       … no more viewers are let in
├── BridgeBusy           … another bridge has its home
└── AgentsFileError      … the file that names its agents is wrong
"""

from dragoman.errors import DragomanError


class BridgeProblem(DragomanError):
    """Something is wrong with a bridge itself."""


class TooManyViewers(BridgeProblem):
    """No more viewers are let in."""

    def __init__(self, agent: str, limit: int) -> None:
        self.agent = agent
        self.limit = limit
        super().__init__(f"{limit} viewers are connected to {agent}, which is the limit; close some, then try again")


class BridgeBusy(BridgeProblem):
    """Another bridge has the home: `pid` on `host`, if that could be read from its lock, at `url` if it told it."""

    def __init__(self, home: str, pid: int | None, host: str | None, url: str | None = None) -> None:
        self.home = home
        self.pid = pid
        self.host = host
        self.url = url
        holder = f"process {pid} on {host}" if pid is not None else "another process"
        holder += f", at {url}" if url else ""
        super().__init__(f"{home} is in use by the bridge of {holder}; stop that, or use another DRAGOMAN_HOME")


class AgentsFileError(BridgeProblem):
    """The file that names a bridge's agents is wrong."""

    def __init__(self, path: str, problem: str) -> None:
        self.path = path
        self.problem = problem
        super().__init__(f"{path}: {problem}")
