"""What can go wrong with a database, in words that name the next step and never the password."""

from dragoman.errors import DragomanError, LogFailed


class DatabaseUnavailable(LogFailed):
    """The database does not answer, or cannot write just now; what was asked may be asked again later."""

    def __init__(self, database: str, problem: str, advice: str = "") -> None:
        self.database = database
        self.problem = problem
        step = f"{advice}; it" if advice else "it"
        super().__init__(f"cannot use the database {database}: {problem}; {step} is tried again with the next request")


class DatabaseRefused(LogFailed):
    """The database refuses, and will again."""

    def __init__(self, database: str, problem: str, advice: str = "see its log, and the rights of this user") -> None:
        self.database = database
        self.problem = problem
        super().__init__(f"the database {database} refuses: {problem}; {advice}")


class BadStoreAddress(DragomanError):
    """A text that names no store."""


class SchemaMismatch(LogFailed):
    """The tables of a database are not those that this program knows."""

    def __init__(self, database: str, found: int, expected: int) -> None:
        self.found = found
        self.expected = expected
        if found == 0:
            words = f"the database {database} has no tables of dragoman; make them with `dragoman store init`"
        elif found < expected:
            words = (
                f"the tables in the database {database} are version {found}, and this dragoman uses version "
                f"{expected}; stop older programs, then upgrade the tables with `dragoman store migrate`"
            )
        else:
            words = (
                f"the tables in the database {database} are version {found}, and this dragoman knows only version "
                f"{expected}; upgrade dragoman on this machine"
            )
        super().__init__(words)


class TooMuchWaits(LogFailed):
    """More was said than is kept for a database that does not take it."""

    def __init__(self, database: str, limit: int) -> None:
        super().__init__(
            f"the database {database} takes nothing, and {limit:,} bytes wait for it already; load the session again "
            "once the database is back"
        )


class LeaseLost(LogFailed):
    """This process could not reach the database for so long that another one may own its sessions."""

    def __init__(self, database: str, lease_s: float) -> None:
        super().__init__(
            f"the database {database} could not be reached within the lease of {lease_s:g} s, so that another process "
            "may have taken this session over; load the session again"
        )


class SessionTaken(LogFailed):
    """There is a session of that id."""

    def __init__(self, session_id: str) -> None:
        super().__init__(f"there is a session {session_id} already; a session must be given an id that was never used")


class Fenced(LogFailed):
    """Another process owns the session now."""

    def __init__(self, session_id: str) -> None:
        super().__init__(
            f"session {session_id} was taken over by another process; load it again to go on with it there"
        )
