"""The exceptions of the bridge.

BridgeError
├── TooManyViewersError       … the limit on viewers is reached
├── BridgeBusyError           … another bridge uses the home directory
├── AgentsFileError           … the file of agents is invalid
└── NoAnswerError             … the agent will not answer a request (in agent_link)
    └── AgentEndedError       … because its process has ended
"""

from dragoman.errors import DragomanError


class BridgeError(DragomanError):
    """An error of the bridge."""


class TooManyViewersError(BridgeError):
    """The limit on viewers is reached."""

    def __init__(self, agent: str, limit: int, who: str = "viewers") -> None:
        self.agent = agent
        self.limit = limit
        super().__init__(f"{limit} {who} are connected to {agent}, the limit; close some and try again")


class BridgeBusyError(BridgeError):
    """Another bridge uses the home directory. `pid` and `host` come from its lock, and `url` if it published one."""

    def __init__(self, home: str, pid: int | None, host: str | None, url: str | None = None) -> None:
        self.home = home
        self.pid = pid
        self.host = host
        self.url = url
        holder = f"process {pid} on {host}" if pid is not None else "another process"
        holder += f", at {url}" if url else ""
        super().__init__(f"{home} is in use by the bridge of {holder}; stop that, or use another DRAGOMAN_HOME")


class AgentsFileError(BridgeError):
    """The file of a bridge's agents is invalid."""

    def __init__(self, path: str, problem: str) -> None:
        self.path = path
        self.problem = problem
        super().__init__(f"{path}: {problem}")
