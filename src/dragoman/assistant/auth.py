"""Logging in: the methods that a client is offered if the configured model needs a provider's key.

Two kinds of method of the protocol fit. An `agent` method works with every client. It explains how to provide the
key, and `authenticate` checks whether the key is there now. A `terminal` method is for clients that can run one.
They start the agent's command again with `--login PROVIDER`, which asks for the key and exits. A client never passes
it to `authenticate`. `logout` deletes the stored key. It is not offered while the key comes from the environment,
because it would have no effect.

`authMethods` are part of the answer to `initialize`, before any session. They are about the default model as far as
it is known then. A project's own agent file is not read.
"""

import os
import re
import stat
from typing import TYPE_CHECKING, NamedTuple

from dragoman.assistant.models.providers import (
    PROVIDERS,
    address_variable,
    key_from_environment,
    key_instructions,
    login_name,
)
from dragoman.errors import DragomanError, ErrorCode, InvalidParamsError, RpcError
from dragoman.protocol import v1

if TYPE_CHECKING:
    from dragoman.assistant.keys import KeyStore

LOGIN_OPTION = "--login"
"""The option of `dragoman agent` that clients append to the agent's command."""

MAX_LOOKED_AT = 1 << 20
"""Only this many bytes of an agent file are searched."""

_NAMES_A_MODEL = re.compile(rb"^[^#\n]*\bmodel\b", re.MULTILINE)
"""The key outside of a comment. An agent file without it names no model, and need not be parsed."""


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
                name=f"Use an API key of {title}",
                description=f"{title} needs a key: {key_instructions(self._name)}. Then choose this method.",
            )
        ]
        if client.auth.terminal and address_variable(self._provider) is None:
            methods.append(
                v1.AuthMethodTerminal(
                    id=self._login_method,
                    name=f"Log in to {title}",
                    description="Asks for the key in a terminal and stores it in a file only you can read.",
                    args=[LOGIN_OPTION, self._name],
                )
            )
        self._offered = [method.id for method in methods]
        return methods

    @property
    def can_log_out(self) -> bool:
        """Whether deleting the stored key has an effect."""
        return key_from_environment(self._provider) is None and address_variable(self._provider) is None

    def methods_for(self, model: str) -> list[str]:
        """Return the ids of the offered methods if they are for this model's provider."""
        kind = model.partition(":")[0]
        return self._offered if kind in PROVIDERS and login_name(kind) == self._name else []

    def authenticate(self, method_id: str) -> None:
        """Check that the key is there now.

        Raises RpcError, or InvalidParamsError for a method other than the agent's own.
        """
        if method_id != self._key_method:
            raise InvalidParamsError("params.methodId", self._refuse(method_id), expected=self._key_method)
        if not self._has_key():
            problem = f"{self._provider.title} needs a key; {key_instructions(self._name)}"
            raise RpcError(ErrorCode.AUTH_REQUIRED, {"problem": problem, "authMethods": self._offered})

    def status(self) -> v1.AuthStatusResponse:
        """Return whether the key is there, and for which account."""
        try:
            is_there = self._has_key()
        except RpcError:
            return v1.AuthStatusResponse(state="unknown")
        if not is_there:
            return v1.AuthStatusResponse(state="unauthenticated")
        account = v1.AuthAccount(label=f"{self._provider.title} API key", active=True)
        return v1.AuthStatusResponse(state="authenticated", accounts=[account])

    def log_out(self) -> None:
        """Delete the stored key. Raises RpcError."""
        from dragoman.assistant.keys import KeysFileError

        try:
            self._keys().remove(self._name)
        except KeysFileError as error:
            raise RpcError(ErrorCode.INTERNAL_ERROR, str(error)) from error

    def _refuse(self, method_id: str) -> str:
        if method_id in self._offered:
            return f"{method_id!r} is a terminal method: run it in a terminal, then connect again"
        return f"{method_id!r} was not offered; this agent offers {' and '.join(self._offered)}"

    def _has_key(self) -> bool:
        from dragoman.assistant.keys import KeysFileError

        if key_from_environment(self._provider) is not None:
            return True
        try:
            return address_variable(self._provider) is None and self._keys().find(self._name) is not None
        except KeysFileError as error:
            data = {"problem": str(error), "authMethods": self._offered}
            raise RpcError(ErrorCode.AUTH_REQUIRED, data) from error

    def _keys(self) -> "KeyStore":
        from pathlib import Path

        from dragoman.assistant.keys import KeyStore

        return KeyStore(Path(self._home))


def find_auth(model: str | None, home: str) -> Auth | None:
    """Return the login that the model needs, or None."""
    kind = model.partition(":")[0] if model else ""
    return Auth(kind, home) if kind in PROVIDERS and PROVIDERS[kind].needs_key else None


class Configured(NamedTuple):
    """The default model, and whether its key is for its own server instead of a provider."""

    name: str | None = None
    has_own_key: bool = False

    @property
    def login_model(self) -> str | None:
        """The model name for the login, or None if the key is for its own server."""
        return None if self.has_own_key else self.name


def configured_model(home: str, *, model: str | None, agent_file: str | None, default_model: str | None) -> Configured:
    """Return the default model, as far as it is known before a session.

    As in `AgentSetup`, `model` comes first, then the agent file's model, `default_model` and the user's choice.
    """
    if model:
        return Configured(model)
    path = agent_file or home
    if os.path.isdir(path):  # noqa: PTH112 -- pathlib takes 3 ms, often for nothing
        path = os.path.join(path, "dragoman.yaml")  # noqa: PTH118 -- as above
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

    from dragoman.assistant.preferences import PreferenceFile, PreferencesFileError

    try:
        chosen = PreferenceFile(Path(home)).read().model
    except PreferencesFileError:
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
