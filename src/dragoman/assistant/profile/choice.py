"""Chooses the agent file of a session, and considers trust."""

from pathlib import Path
from typing import Literal

import msgspec

from dragoman.assistant.profile.profile import Profile, UnderstoodKey, describe_unused_keys, load_profile
from dragoman.assistant.profile.sources import ProfileError
from dragoman.assistant.profile.trust import TrustStore, describe_changes
from dragoman.assistant.yaml import YamlProblem
from dragoman.text import visible

FILE_NAME = "dragoman.yaml"
TSAGENT_FILE_NAMES = ("tsagent.yaml", "tsagent.yml", "tsagent.json")
"""In the order in which TsAgent searches for them."""

Origin = Literal["explicit", "project", "home", "none"]


class FoundProfile(msgspec.Struct, frozen=True):
    """A profile with its file and hash, and the meaning of each key of a TsAgent file."""

    profile: Profile = Profile()
    path: Path | None = None
    origin: Origin = "none"
    digest: str = ""
    understood: tuple[UnderstoodKey, ...] = ()


def find_explicit(path: Path) -> FoundProfile:
    """Return the file at this path, or in the directory at this path. Raises ProfileError."""
    place = path.absolute()
    if place.is_dir():
        found = _find_in(place, "explicit")
        if found is None:
            raise ProfileError(
                str(path), [YamlProblem(0, f"there is no {FILE_NAME} in this folder; `dragoman init` writes one")]
            )
        return found
    try:
        return _find(place, "explicit")
    except FileNotFoundError:
        raise ProfileError(
            str(path), [YamlProblem(0, "there is no such agent file; `dragoman init` writes one")]
        ) from None


def find_in_project(cwd: str, home: Path) -> FoundProfile | None:
    """Return the file in a session's directory, unless that is the home. Raises ProfileError."""
    return None if _is_same(cwd, home) else _find_in(Path(cwd), "project")


def find_at_home(home: Path) -> FoundProfile:
    """Return the file in the home, or the default profile. Raises ProfileError."""
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


class ProfileChoice(msgspec.Struct, frozen=True):
    """The profile to use now, a project's file that waits for approval, and a notice to show."""

    found: FoundProfile
    pending: FoundProfile | None = None
    changes: tuple[str, ...] = ()
    notice: str | None = None


def choose_profile(explicit: Path | None, cwd: str, home: Path, trust: TrustStore) -> ProfileChoice:
    """Choose the profile for a session in this directory. Raises ProfileError only for the user's own files."""
    if explicit is not None:
        return _used(find_explicit(explicit))
    own = find_at_home(home)
    try:
        project = find_in_project(cwd, home)
    except ProfileError as error:
        return ProfileChoice(
            own, notice=f"The agent file of this project is ignored, because it is not valid:\n{error}"
        )
    return _used(own) if project is None else _judge(project, own, trust)


def _used(found: FoundProfile) -> ProfileChoice:
    unused = describe_unused_keys(found.understood)
    return ProfileChoice(found, notice=f"{visible(str(found.path))} is used. {unused}" if unused else None)


def _judge(project: FoundProfile, own: FoundProfile, trust: TrustStore) -> ProfileChoice:
    assert project.path is not None  # noqa: S101 -- a found file has a path
    path = visible(str(project.path))
    changes = tuple(describe_changes(project.profile, own.profile))
    verdict = trust.verdict(project.path, project.digest)
    if verdict or not changes:
        return _used(project)
    if verdict is None:
        notice = f"{path} is ignored until you agree to its changes."
        return ProfileChoice(own, project, changes, notice)
    return ProfileChoice(own, notice=f"{path} is ignored, as you decided; you are asked again when it changes.")
