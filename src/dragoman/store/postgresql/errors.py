"""The errors of a database. Their messages name the next step and never contain the password."""

from dragoman.errors import DragomanError, LogError


class DatabaseUnavailableError(LogError):
    """The database does not answer or cannot write at the moment. The request can be repeated later."""

    def __init__(self, database: str, problem: str, advice: str = "") -> None:
        self.database = database
        self.problem = problem
        step = f"{advice}; it" if advice else "it"
        super().__init__(f"cannot use the database {database}: {problem}; {step}. The next request tries again")


class DatabaseRefusedError(LogError):
    """The database refuses the request. Repeating it does not help."""

    def __init__(
        self, database: str, problem: str, advice: str = "check its log and the permissions of this user"
    ) -> None:
        self.database = database
        self.problem = problem
        super().__init__(f"the database {database} refused the request: {problem}; {advice}")


class InvalidStoreAddressError(DragomanError):
    """A text is not the address of a store, or a setting of the store is not valid."""


class SchemaMismatchError(LogError):
    """The tables of a database are missing or of another version."""

    def __init__(self, database: str, found: int, expected: int) -> None:
        self.found = found
        self.expected = expected
        if found == 0:
            message = f"the database {database} has no dragoman tables; create them with `dragoman store init`"
        elif found < expected:
            message = (
                f"the tables in the database {database} are version {found}, and this dragoman uses version "
                f"{expected}; stop older programs, then upgrade the tables with `dragoman store migrate`"
            )
        else:
            message = (
                f"the tables in the database {database} are version {found}, and this dragoman knows only version "
                f"{expected}; upgrade dragoman on this machine"
            )
        super().__init__(message)


class WriteQueueFullError(LogError):
    """Too many bytes wait for a database that does not accept them."""

    def __init__(self, database: str, limit: int) -> None:
        super().__init__(
            f"the database {database} accepts no data, and {limit:,} bytes are already waiting; load the session again "
            "when the database is back"
        )


class LeaseLostError(LogError):
    """The lease has ended without a heartbeat of this process, or of the agent's bridge.

    Another process may own its sessions now.
    """

    def __init__(self, database: str, lease_s: float, *, of_bridge: bool = False) -> None:
        by_bridge = " by the bridge of this agent" if of_bridge else ""
        super().__init__(
            f"the database {database} could not be reached{by_bridge} within the lease of {lease_s:g} s, so another "
            "process may have taken over this session; load the session again"
        )


class SessionExistsError(LogError):
    """A session with that id exists."""

    def __init__(self, session_id: str) -> None:
        super().__init__(f"session {session_id} already exists; use an id that was never used")


class FencedError(LogError):
    """Another process owns the session now."""

    def __init__(self, session_id: str) -> None:
        super().__init__(f"session {session_id} was taken over by another process; load it again to continue")
