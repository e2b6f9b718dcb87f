"""The model and the agent that a person chose in the page, `chat` or `run`: `<home>/preferences.json`.

    {"model": {"name": "openai:qwen3", "base_url": "http://127.0.0.1:1234/v1"}, "agent": "opencode"}

Both are defaults: an option, an agent file or `DRAGOMAN_MODEL` counts before them. The file holds no secret, but
whoever can write it decides where conversations are sent: one that others could have written is refused. It is read
anew each time, so that a choice in another process counts from then on. Without the file nothing is chosen.
"""

from pathlib import Path
from typing import ClassVar

import msgspec

from dragoman.files.private_file import PrivateFile, PrivateFileUnusable, PrivateJson

FILE_NAME = "preferences.json"

_START_AGAIN = "remove it and choose again"


class PreferencesUnusable(PrivateFileUnusable):
    """The file of the choices cannot be used."""

    content: ClassVar[str] = "choices"


class ChosenModel(msgspec.Struct, frozen=True, omit_defaults=True):
    """A model, and its address unless that is the provider's own."""

    name: str
    base_url: str | None = None


class Preferences(msgspec.Struct, frozen=True, omit_defaults=True):
    """The choices; None where nothing was chosen."""

    model: ChosenModel | None = None
    agent: str | None = None
    """The name of an installed agent that answers in place of ours."""


class PreferenceFile:
    """The choices of one home."""

    def __init__(self, home: Path) -> None:
        self.path = home / FILE_NAME
        self._file = PrivateJson(PrivateFile(self.path), PreferencesUnusable, start_again=_START_AGAIN)

    def read(self) -> Preferences:
        """Return the choices; raises PreferencesUnusable."""
        try:
            return msgspec.json.decode(self._file.read(), type=Preferences)
        except (FileNotFoundError, NotADirectoryError):
            return Preferences()
        except OSError as error:
            raise self._file.explain(error) from None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise PreferencesUnusable(self.path, f"it is damaged ({error})", _START_AGAIN) from None

    def choose_model(self, model: ChosenModel) -> None:
        """Remember a model, which our own agent then answers with; raises PreferencesUnusable."""
        with self._file.writing():
            self._file.write(Preferences(model))

    def choose_agent(self, name: str | None) -> None:
        """Remember an agent in place of ours, or ours; raises PreferencesUnusable."""
        with self._file.writing():
            self._file.write(msgspec.structs.replace(self.read(), agent=name))
