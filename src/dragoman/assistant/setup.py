"""The setup that all sessions of a process share: the home, the agent file, the models."""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path

from dragoman.assistant.keys import KeyStore, give_keys
from dragoman.assistant.models import find_model
from dragoman.assistant.models.model import Model
from dragoman.assistant.options import GUIDE
from dragoman.assistant.preferences import ChosenModel, PreferenceFile
from dragoman.assistant.profile import Profile, ProfileChoice, TrustStore, choose_profile
from dragoman.assistant.profile.settings import ModelSettings

MODEL_CLOSE_TIMEOUT_S = 1.0
"""A connection is closed in milliseconds; a local model that is in the middle of a batch is freed with the process."""

_log = logging.getLogger("dragoman.assistant")

FindModel = Callable[[str, ModelSettings | None], Model]


class AgentSetup:
    """The command line's decisions; `model` counts before the agent file's, `default_model` after it.

    The model that the person chose counts last: `PreferenceFile`.
    """

    def __init__(
        self,
        home: Path,
        *,
        model: Model | None = None,
        default_model: Model | None = None,
        agent_file: Path | None = None,
        find: FindModel = find_model,
    ) -> None:
        self.home = home
        self.trust = TrustStore(home)
        self._keys = KeyStore(home)
        self._preferences = PreferenceFile(home)
        self._model = model
        self._default_model = default_model
        self._agent_file = agent_file
        self._find = find
        self._found: dict[str, Model] = {}
        self._used: list[Model] = []

    def choose_profile(self, cwd: str) -> ProfileChoice:
        """Choose the agent file for a session; reads files, so not for the event loop. Raises ProfileError."""
        return choose_profile(self._agent_file, cwd, self.home, self.trust)

    def choose(self, cwd: str) -> tuple[ProfileChoice, Model]:
        """Choose the agent file and the model for a session; reads files as well.

        Raises ProfileError, UnknownModel, ModelFailure and MissingVariable.
        """
        choice = self.choose_profile(cwd)
        return choice, self.model_for(choice.found.profile)

    @property
    def agent_file(self) -> str | None:
        """The agent file that the command line names."""
        return str(self._agent_file) if self._agent_file else None

    def model_for(self, profile: Profile) -> Model:
        """Return the model for an agent file; may read files, so not for the event loop.

        Raises UnknownModel, ModelFailure, MissingVariable and PreferencesUnusable.
        """
        if self._model is not None:
            model = self._model
        elif profile.model is not None:
            model = self._take(profile.model.name, profile.model)
        else:
            model = self._default_model or self.find(self.chosen_model() or GUIDE)
        if model not in self._found.values():
            self._found[model.name] = give_keys(model, self._keys)
        return model

    def find(self, name: str) -> Model:
        """Return a model by its name; may read files, so not for the event loop.

        Raises UnknownModel, ModelFailure and PreferencesUnusable.
        """
        chosen = self._preferences.read().model or ChosenModel(GUIDE)
        base_url = chosen.base_url if chosen.name == name else None
        key = f"{name} at {base_url}" if base_url else name
        if key not in self._found:
            settings = ModelSettings(name, base_url) if base_url else None
            self._found[key] = give_keys(self._take(name, settings), self._keys)
        return self._found[key]

    def chosen_model(self) -> str | None:
        """Return the name of the model that the person chose; reads a file as well. Raises PreferencesUnusable."""
        chosen = self._preferences.read().model
        return chosen.name if chosen else None

    def reason_against_choice(self, cwd: str) -> str | None:
        """Say what counts before the person's choice for new sessions in a directory; raises ProfileError."""
        if self._model is not None:
            return f"dragoman was started with --model {self._model.name}"
        found = self.choose_profile(cwd).found
        if found.profile.model is not None:
            return f"the agent file {found.path} names {found.profile.model.name}"
        return f"DRAGOMAN_MODEL is {self._default_model.name}" if self._default_model is not None else None

    async def close(self) -> None:
        """Close the models."""
        given = [model for model in (self._model, self._default_model) if model is not None]
        await asyncio.gather(*(_close(model) for model in [*given, *self._used]))

    def _take(self, name: str, settings: ModelSettings | None) -> Model:
        model = self._find(name, settings)
        self._used.append(model)
        return model


async def _close(model: Model) -> None:
    try:
        async with asyncio.timeout(MODEL_CLOSE_TIMEOUT_S):
            await model.close()
    except Exception as error:  # noqa: BLE001 -- boundary: after any error of a library the children still have to end
        _log.warning("%s could not be closed: %s", model.name, type(error).__name__)
