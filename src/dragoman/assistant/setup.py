"""The setup that all sessions of a process share: the home, the agent file and the models."""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path

from dragoman.assistant.keys import KeyStore, with_keys
from dragoman.assistant.models import find_model
from dragoman.assistant.models.model import Model
from dragoman.assistant.options import GUIDE
from dragoman.assistant.preferences import ChosenModel, PreferenceFile
from dragoman.assistant.profile import Profile, ProfileChoice, TrustStore, choose_profile
from dragoman.assistant.profile.settings import ModelSettings
from dragoman.sandbox import SandboxMode

MODEL_CLOSE_TIMEOUT_S = 1.0
"""A connection closes in milliseconds. One that hangs is closed with the process."""

_log = logging.getLogger("dragoman.assistant")

FindModel = Callable[[str, ModelSettings | None], Model]


class AgentSetup:
    """The decisions of the command line.

    `model` overrides the agent file's model. `default_model` is used if the agent file names none. The user's choice in
    `PreferenceFile` comes last.
    """

    def __init__(
        self,
        home: Path,
        *,
        model: Model | None = None,
        default_model: Model | None = None,
        agent_file: Path | None = None,
        sandbox: SandboxMode | None = None,
        find: FindModel = find_model,
    ) -> None:
        self.home = home
        self.sandbox: SandboxMode | None = sandbox
        """The sandbox that overrides the agent file's."""
        self.trust = TrustStore(home)
        self._keys = KeyStore(home)
        self._preferences = PreferenceFile(home)
        self._model = model
        self._default_model = default_model
        self._agent_file = agent_file
        self._find = find
        self._found: dict[str, Model] = {}
        self._created: list[Model] = []

    def choose_profile(self, cwd: str) -> ProfileChoice:
        """Choose the agent file for a session. Reads files, so call it in a thread. Raises ProfileError."""
        return choose_profile(self._agent_file, cwd, self.home, self.trust)

    def choose(self, cwd: str) -> tuple[ProfileChoice, Model]:
        """Choose the agent file and the model for a session. Reads files, so call it in a thread.

        Raises ProfileError, UnknownModelError, ModelError or MissingVariableError.
        """
        choice = self.choose_profile(cwd)
        return choice, self.model_for(choice.found.profile)

    @property
    def agent_file(self) -> str | None:
        """The agent file of the command line."""
        return str(self._agent_file) if self._agent_file else None

    def model_for(self, profile: Profile) -> Model:
        """Return the model for an agent file. May read files, so call it in a thread.

        Raises UnknownModelError, ModelError, MissingVariableError or PreferencesFileError.
        """
        if self._model is not None:
            model = self._model
        elif profile.model is not None:
            model = self._create(profile.model.name, profile.model)
        else:
            model = self._default_model or self.find(self.chosen_model() or GUIDE)
        if model not in self._found.values():
            self._found[model.name] = with_keys(model, self._keys)
        return model

    def find(self, name: str) -> Model:
        """Return the model with this name. May read files, so call it in a thread.

        Raises UnknownModelError, ModelError or PreferencesFileError.
        """
        chosen = self._preferences.read().model or ChosenModel(GUIDE)
        base_url = chosen.base_url if chosen.name == name else None
        key = f"{name} at {base_url}" if base_url else name
        if key not in self._found:
            settings = ModelSettings(name, base_url) if base_url else None
            self._found[key] = with_keys(self._create(name, settings), self._keys)
        return self._found[key]

    def chosen_model(self) -> str | None:
        """Return the name of the user's chosen model, or None. Reads a file. Raises PreferencesFileError."""
        chosen = self._preferences.read().model
        return chosen.name if chosen else None

    def find_override(self, cwd: str) -> str | None:
        """Return the setting that overrides the user's choice for new sessions, or None. Raises ProfileError."""
        if self._model is not None:
            return f"dragoman was started with --model {self._model.name}"
        found = self.choose_profile(cwd).found
        if found.profile.model is not None:
            return f"the agent file {found.path} names {found.profile.model.name}"
        return f"DRAGOMAN_MODEL is {self._default_model.name}" if self._default_model is not None else None

    async def close(self) -> None:
        """Close the models."""
        models = [model for model in (self._model, self._default_model) if model is not None]
        await asyncio.gather(*(_close(model) for model in [*models, *self._created]))

    def _create(self, name: str, settings: ModelSettings | None) -> Model:
        model = self._find(name, settings)
        self._created.append(model)
        return model


async def _close(model: Model) -> None:
    try:
        async with asyncio.timeout(MODEL_CLOSE_TIMEOUT_S):
            await model.close()
    except Exception as error:  # noqa: BLE001 -- boundary: children must still be stopped after a library's error
        _log.warning("%s could not be closed: %s", model.name, type(error).__name__)
