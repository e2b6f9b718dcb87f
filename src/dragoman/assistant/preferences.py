"""The user's choice of model and agent, from the page, `chat` or `run`: `<home>/preferences.json`.

    {"model": {"name": "openai:qwen3", "base_url": "http://127.0.0.1:1234/v1"}, "agent": "opencode"}

Both are defaults. An option, an agent file or `DRAGOMAN_MODEL` takes precedence. The file contains no secret, but it
decides where conversations are sent. A file that others can write is therefore refused. It is read each time, so a
choice made in another process takes effect at once.
"""

from pathlib import Path
from typing import ClassVar

import msgspec

from dragoman.files.private_file import PrivateFile, PrivateFileError, PrivateJson

FILE_NAME = "preferences.json"

_START_AGAIN = "remove it and choose again"


class PreferencesFileError(PrivateFileError):
    """The preferences file cannot be used."""

    content: ClassVar[str] = "choices"


class ChosenModel(msgspec.Struct, frozen=True, omit_defaults=True):
    """A model, with its address if that is not the provider's."""

    name: str
    base_url: str | None = None


class Preferences(msgspec.Struct, frozen=True, omit_defaults=True):
    """The user's choices. None means no choice."""

    model: ChosenModel | None = None
    agent: str | None = None
    """The name of an installed agent to use instead of dragoman's."""


class PreferenceFile:
    """The preferences of one home."""

    def __init__(self, home: Path) -> None:
        self.path = home / FILE_NAME
        self._file = PrivateJson(PrivateFile(self.path), PreferencesFileError, start_again=_START_AGAIN)

    def read(self) -> Preferences:
        """Return the preferences. Raises PreferencesFileError."""
        try:
            return msgspec.json.decode(self._file.read(), type=Preferences)
        except (FileNotFoundError, NotADirectoryError):
            return Preferences()
        except OSError as error:
            raise self._file.explain(error) from None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise PreferencesFileError(self.path, f"it is damaged ({error})", _START_AGAIN) from None

    def choose_model(self, model: ChosenModel) -> None:
        """Save a model as the default of dragoman's agent. Raises PreferencesFileError."""
        with self._file.writing():
            self._file.write(Preferences(model))

    def choose_agent(self, name: str | None) -> None:
        """Save an agent as the default, or our own agent if None. Raises PreferencesFileError."""
        with self._file.writing():
            self._file.write(msgspec.structs.replace(self.read(), agent=name))
