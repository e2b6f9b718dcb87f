"""The model and the agent that a person chose in the page, `chat` or `run`: `<home>/preferences.json`.

    {"model": {"name": "openai:qwen3", "base_url": "http://127.0.0.1:1234/v1"}, "agent": "opencode"}

Both are defaults: an option, an agent file or `DRAGOMAN_MODEL` counts before them. The file holds no secret, but
whoever can write it decides where conversations are sent: one that others could have written is refused. It is read
anew each time, so that a choice in another process counts from then on. Without the file nothing is chosen.
"""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from dragoman.errors import DragomanError
from dragoman.files.private_file import Exposed, PrivateFile, next_step

FILE_NAME = "preferences.json"


class PreferencesUnusable(DragomanError):
    """The file of the choices cannot be used."""

    def __init__(self, path: Path, problem: str, remedy: str) -> None:
        self.path = path
        self.problem = problem
        super().__init__(f"the choices in {path} cannot be used: {problem}; {remedy}")


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
        self._file = PrivateFile(self.path)

    def read(self) -> Preferences:
        """Return the choices; raises PreferencesUnusable."""
        try:
            return msgspec.json.decode(self._file.read(), type=Preferences)
        except (FileNotFoundError, NotADirectoryError):
            return Preferences()
        except OSError as error:
            raise self._unusable(error) from None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise PreferencesUnusable(self.path, f"it is damaged ({error})", "remove it and choose again") from None

    def choose_model(self, model: ChosenModel) -> None:
        """Remember a model, which our own agent then answers with; raises PreferencesUnusable."""
        with self._writing():
            self._write(Preferences(model))

    def choose_agent(self, name: str | None) -> None:
        """Remember an agent in place of ours, or ours; raises PreferencesUnusable."""
        with self._writing():
            self._write(msgspec.structs.replace(self.read(), agent=name))

    def _write(self, preferences: Preferences) -> None:
        self._file.replace(msgspec.json.format(msgspec.json.encode(preferences), indent=2) + b"\n")

    @contextmanager
    def _writing(self) -> Generator[None]:
        try:
            with self._file.writing():
                yield
        except TimeoutError:
            raise PreferencesUnusable(self.path, "another process is writing them", "try again") from None
        except OSError as error:
            raise self._unusable(error) from None

    def _unusable(self, error: OSError) -> PreferencesUnusable:
        if isinstance(error, Exposed):
            return PreferencesUnusable(self.path, error.problem, "remove it and choose again")
        problem = error.strerror or type(error).__name__
        return PreferencesUnusable(self.path, problem, next_step(error, "see that this user can read and write it"))
