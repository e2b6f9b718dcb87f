"""The parts that serve the requests of viewers, and the table of the methods that each serves."""

from collections.abc import Callable, Mapping

from msgspec import UNSET

from dragoman.bridge.delivery import Delivery, ViewerRequest
from dragoman.bridge.registry import Announcements, OpeningRequests, SessionRegistry, SessionRestorer
from dragoman.bridge.router.file_requests import FileRequests
from dragoman.bridge.router.label_requests import LabelRequests
from dragoman.bridge.router.listing import SessionListing
from dragoman.bridge.router.questions import Questions
from dragoman.bridge.router.search import SessionSearch
from dragoman.bridge.router.session_pages import SessionPages
from dragoman.bridge.router.session_requests import STEER, SessionRequests
from dragoman.bridge.settings import Settings
from dragoman.bridge.supervisor import AgentSupervisor
from dragoman.wire import Message

ServeRequest = Callable[[ViewerRequest], None]


class RequestHandlers:
    """Finds the handler of a request; a method that has none is the agent's alone."""

    def __init__(
        self,
        settings: Settings,
        *,
        delivery: Delivery,
        supervisor: AgentSupervisor,
        registry: SessionRegistry,
        restorer: SessionRestorer,
        announcements: Announcements,
        questions: Questions,
        more: Mapping[str, ServeRequest],
    ) -> None:
        timeout_s = settings.agent_limits.open_timeout_s
        self._supervisor = supervisor
        self._restorer = restorer
        self.files = FileRequests(settings.cwd, delivery.spawn, registry)
        self.search = SessionSearch(delivery, registry)
        self.sessions = SessionRequests(
            delivery=delivery, supervisor=supervisor, registry=registry, restorer=restorer, questions=questions
        )
        self.opening = OpeningRequests(
            settings.agent_limits,
            journals=delivery.journals,
            spawn=delivery.spawn,
            supervisor=supervisor,
            registry=registry,
            restorer=restorer,
            announcements=announcements,
            questions=questions,
        )
        self._pages = SessionPages(registry.lists, delivery.spawn)
        self._listing = SessionListing(
            timeout_s, delivery=delivery, supervisor=supervisor, registry=registry, restorer=restorer
        )
        self._labels = LabelRequests(
            timeout_s,
            spawn=delivery.spawn,
            supervisor=supervisor,
            registry=registry,
            restorer=restorer,
            questions=questions,
            listing=self._listing,
        )
        self._table: dict[str, ServeRequest] = {**self._make_table(), **more}

    def find(self, method: str) -> ServeRequest | None:
        """Return the handler of a method; None if the bridge only passes it on."""
        return self._table.get(method)

    def _make_table(self) -> dict[str, ServeRequest]:
        return {
            "session/new": self.opening.new,
            "session/fork": self.opening.new,
            "session/load": self.opening.load,
            "session/resume": self.opening.load,
            "session/prompt": self.sessions.prompt,
            "session/list": self._listing.list_sessions,
            "session/set_title": self._labels.set_title,
            "session/archive": self._labels.archive,
            "session/unarchive": self._labels.unarchive,
            "session/status": self._labels.status,
            "session/delete": self.sessions.delete,
            "session/close": self.sessions.close,
            STEER: self.sessions.steer,
            "authenticate": self._authenticate,
            "auth/login": self._authenticate,
            "_dragoman/sessions": self._pages.sessions,
            "_dragoman/projects": self._pages.projects,
            "_dragoman/queue/change": self.sessions.change_queued,
            "_dragoman/queue/resume": self.sessions.resume_queue,
            "_dragoman/files": self.files.find,
            "_dragoman/revert": self.files.revert,
            "_dragoman/search": self.search.search,
        }

    def _authenticate(self, request: ViewerRequest) -> None:
        """Have the agent log somebody in, and then give it the sessions that it refused before."""

        def answered(message: Message, line: bytes) -> None:
            request.pass_on(line)
            if message.error is UNSET:
                self._supervisor.initialize.has_login = True
                self._restorer.wake_after_login()

        self._restorer.forward(request, answered=answered)
