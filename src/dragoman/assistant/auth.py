"""Logging in: the methods that a client is offered when the configured model needs a provider's key.

Two of the protocol's kinds of method fit. An `agent` method is for every client: it says in words how the key is
given, and `authenticate` with it answers whether the key is there now. A `terminal` method is for clients that can
run one: they start the agent's own command again with `--login PROVIDER`, which asks for the key and ends; a client
never passes it to `authenticate`. `logout` forgets what the login kept, so it is offered only where that is what
counts: not while the key comes from the environment.

`authMethods` go out with the answer to `initialize`, when there is no session yet. So they are about the model that
sessions begin with as far as that is known by then, and a project's own agent file is not looked at.
"""

import os
import re
import stat
from typing import TYPE_CHECKING, NamedTuple

from dragoman.assistant.models.providers import (
    PROVIDERS,
    how_to_give_key,
    key_from_environment,
    leads_elsewhere,
    login_name,
)
from dragoman.errors import DragomanError, ErrorCode, InvalidParams, RpcError
from dragoman.protocol import v1

if TYPE_CHECKING:
    from dragoman.assistant.keys import KeyStore

LOGIN_OPTION = "--login"
"""Of `dragoman agent`; clients append it to the command that they start the agent with."""

MAX_LOOKED_AT = 1 << 20
"""An agent file has no more bytes than that."""

_NAMES_A_MODEL = re.compile(rb"^[^#\n]*\bmodel\b", re.MULTILINE)
"""The key outside a comment: an agent file without it need not be parsed to know that it names none."""


class Auth:
    """The login at one provider, for one client."""

    def __init__(self, kind: str, home: str) -> None:
        self._name = login_name(kind)
        self._provider = PROVIDERS[kind]
        self._home = home
        self._key_method = f"{self._name}-key"
        self._login_method = f"{self._name}-login"
        self._offered: list[str] = []

    def offer(self, client: v1.ClientCapabilities) -> list[v1.AuthMethod]:
        """Return the methods that this client can use."""
        title = self._provider.title
        methods: list[v1.AuthMethod] = [
            v1.AuthMethodAgent(
                id=self._key_method,
                name=f"Use a key of {title}",
                description=f"{title} needs a key: {how_to_give_key(self._name)}. Then choose this.",
            )
        ]
        if client.auth.terminal and leads_elsewhere(self._provider) is None:
            methods.append(
                v1.AuthMethodTerminal(
                    id=self._login_method,
                    name=f"Log in to {title}",
                    description="Asks for the key in a terminal and keeps it in a file that only you can read.",
                    args=[LOGIN_OPTION, self._name],
                )
            )
        self._offered = [method.id for method in methods]
        return methods

    @property
    def can_log_out(self) -> bool:
        """Whether forgetting the kept key changes anything."""
        return key_from_environment(self._provider) is None and leads_elsewhere(self._provider) is None

    def methods_for(self, model: str) -> list[str]:
        """Return the ids of the offered methods, if they are for the provider of this model."""
        kind = model.partition(":")[0]
        return self._offered if kind in PROVIDERS and login_name(kind) == self._name else []

    def authenticate(self, method_id: str) -> None:
        """See that the key is there now; raises RpcError, and InvalidParams about any method but the agent's own."""
        if method_id != self._key_method:
            raise InvalidParams("params.methodId", self._refuse(method_id), expected=self._key_method)
        if not self._has_key():
            problem = f"{self._provider.title} needs a key; {how_to_give_key(self._name)}"
            raise RpcError(ErrorCode.AUTH_REQUIRED, {"problem": problem, "authMethods": self._offered})

    def status(self) -> v1.AuthStatusResponse:
        """Return whether the key is there, and whose it is."""
        try:
            is_there = self._has_key()
        except RpcError:
            return v1.AuthStatusResponse(state="unknown")
        if not is_there:
            return v1.AuthStatusResponse(state="unauthenticated")
        account = v1.AuthAccount(label=f"{self._provider.title} API key", active=True)
        return v1.AuthStatusResponse(state="authenticated", accounts=[account])

    def log_out(self) -> None:
        """Forget the kept key; raises RpcError."""
        from dragoman.assistant.keys import KeysUnusable

        try:
            self._keys().remove(self._name)
        except KeysUnusable as error:
            raise RpcError(ErrorCode.INTERNAL_ERROR, str(error)) from error

    def _refuse(self, method_id: str) -> str:
        if method_id in self._offered:
            return f"{method_id!r} is a terminal method: run it in a terminal, then connect again"
        return f"{method_id!r} was not offered; this agent offers {' and '.join(self._offered)}"

    def _has_key(self) -> bool:
        from dragoman.assistant.keys import KeysUnusable

        if key_from_environment(self._provider) is not None:
            return True
        try:
            return leads_elsewhere(self._provider) is None and self._keys().find(self._name) is not None
        except KeysUnusable as error:
            data = {"problem": str(error), "authMethods": self._offered}
            raise RpcError(ErrorCode.AUTH_REQUIRED, data) from error

    def _keys(self) -> "KeyStore":
        from pathlib import Path

        from dragoman.assistant.keys import KeyStore

        return KeyStore(Path(self._home))


def find_auth(model: str | None, home: str) -> Auth | None:
    """Return the login that a model needs, if it needs one."""
    kind = model.partition(":")[0] if model else ""
    return Auth(kind, home) if kind in PROVIDERS and PROVIDERS[kind].needs_key else None


class Configured(NamedTuple):
    """The model that sessions begin with, by its name; and whether its key is no provider's, but an address's."""

    name: str | None = None
    has_own_key: bool = False

    @property
    def asks_login(self) -> str | None:
        """The name, if a login may be about it."""
        return None if self.has_own_key else self.name


def configured_model(home: str, *, model: str | None, agent_file: str | None, default_model: str | None) -> Configured:
    """Return the model that sessions begin with, as far as that is known without one.

    `model` counts before the agent file's, `default_model` after it, and the person's choice last, as in `AgentSetup`.
    """
    if model:
        return Configured(model)
    path = agent_file or os.path.join(home, "dragoman.yaml")  # noqa: PTH118 -- pathlib takes 3 ms, often for nothing
    if not _may_name_a_model(path):
        return Configured(default_model) if default_model else _chosen_model(home)
    from pathlib import Path

    from dragoman.assistant.profile.profile import load_profile

    try:
        settings = load_profile(Path(path)).profile.model
    except (DragomanError, FileNotFoundError):
        return Configured()  # the first session reports the problem with the file
    if settings is None:
        return Configured(default_model) if default_model else _chosen_model(home)
    return Configured(settings.name, settings.base_url is not None or settings.api_key is not None)


def _chosen_model(home: str) -> Configured:
    if not os.path.exists(os.path.join(home, "preferences.json")):  # noqa: PTH110, PTH118 -- as above
        return Configured()
    from pathlib import Path

    from dragoman.assistant.preferences import PreferenceFile, PreferencesUnusable

    try:
        chosen = PreferenceFile(Path(home)).read().model
    except PreferencesUnusable:
        return Configured()  # the first session reports the problem with the file
    return Configured(chosen.name, chosen.base_url is not None) if chosen else Configured()


def _may_name_a_model(path: str) -> bool:
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):  # noqa: PTH116 -- pathlib takes 3 ms, often for nothing
            return False
        with open(path, "rb") as file:  # noqa: PTH123 -- pathlib takes 3 ms, often for nothing
            return _NAMES_A_MODEL.search(file.read(MAX_LOOKED_AT)) is not None
    except OSError:
        return False
