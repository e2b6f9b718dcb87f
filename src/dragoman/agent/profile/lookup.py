"""Where the agent file is found: named, in the project, or at home; the first counts.

In each directory ours is looked for before TsAgent's.
"""

from pathlib import Path
from typing import Literal

import msgspec

from dragoman.agent.profile.file import load_profile
from dragoman.agent.profile.problem import ProfileError
from dragoman.agent.profile.profile import Profile
from dragoman.agent.profile.understood import UnderstoodKey
from dragoman.agent.yaml.nodes import YamlProblem

FILE_NAME = "dragoman.yaml"
TSAGENT_FILE_NAMES = ("tsagent.yaml", "tsagent.yml", "tsagent.json")
"""In the order in which TsAgent itself looks for them."""

Origin = Literal["explicit", "project", "home", "none"]


class FoundProfile(msgspec.Struct, frozen=True):
    """A profile, the file that it comes from, the hash of what was read, and what was understood of TsAgent's."""

    profile: Profile = Profile()
    path: Path | None = None
    origin: Origin = "none"
    digest: str = ""
    understood: tuple[UnderstoodKey, ...] = ()


def find_profile(explicit: Path | None, cwd: str, home: Path) -> FoundProfile:
    """Return the first agent file there is, whether it is trusted or not; raises ProfileError."""
    if explicit is not None:
        return find_explicit(explicit)
    return find_in_project(cwd, home) or find_at_home(home)


def find_explicit(path: Path) -> FoundProfile:
    """Return the file that the person named; raises ProfileError."""
    try:
        return _find(path.absolute(), "explicit")
    except FileNotFoundError:
        raise ProfileError(
            str(path), [YamlProblem(0, "there is no such agent file; `dragoman init` writes one")]
        ) from None


def find_in_project(cwd: str, home: Path) -> FoundProfile | None:
    """Return the file in the directory of a session, unless that is the home; raises ProfileError."""
    return None if _is_same(cwd, home) else _find_in(Path(cwd), "project")


def find_at_home(home: Path) -> FoundProfile:
    """Return the person's own file, or the default; raises ProfileError."""
    return _find_in(home, "home") or FoundProfile()


def _is_same(cwd: str, home: Path) -> bool:
    return home.exists() and home.samefile(cwd)


def _find_in(directory: Path, origin: Origin) -> FoundProfile | None:
    for name in (FILE_NAME, *TSAGENT_FILE_NAMES):
        try:
            return _find(directory / name, origin)
        except FileNotFoundError:
            continue
    return None


def _find(path: Path, origin: Origin) -> FoundProfile:
    loaded = load_profile(path, confined=origin == "project")
    return FoundProfile(loaded.profile, path, origin, loaded.digest, loaded.understood)
