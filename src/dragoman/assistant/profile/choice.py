"""Which agent file counts in a session, once trust is considered."""

from pathlib import Path
from typing import Literal

import msgspec

from dragoman.assistant.profile.profile import Profile, UnderstoodKey, describe_unused_keys, load_profile
from dragoman.assistant.profile.sources import ProfileError
from dragoman.assistant.profile.trust import TrustStore, describe_changes
from dragoman.assistant.yaml import YamlProblem

FILE_NAME = "dragoman.yaml"
TSAGENT_FILE_NAMES = ("tsagent.yaml", "tsagent.yml", "tsagent.json")
"""In the order in which TsAgent itself looks for them."""

Origin = Literal["explicit", "project", "home", "none"]


class FoundProfile(msgspec.Struct, frozen=True):
    """A profile, its file, the hash of the bytes, and, for a TsAgent file, the meaning of each key."""

    profile: Profile = Profile()
    path: Path | None = None
    origin: Origin = "none"
    digest: str = ""
    understood: tuple[UnderstoodKey, ...] = ()


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


class ProfileChoice(msgspec.Struct, frozen=True):
    """The profile that counts now, a project's file that waits for the person's agreement, and a notice to show."""

    found: FoundProfile
    pending: FoundProfile | None = None
    changes: tuple[str, ...] = ()
    notice: str | None = None


def choose_profile(explicit: Path | None, cwd: str, home: Path, trust: TrustStore) -> ProfileChoice:
    """Choose for a session in this directory; raises ProfileError about the person's own files only."""
    if explicit is not None:
        return _used(find_explicit(explicit))
    own = find_at_home(home)
    try:
        project = find_in_project(cwd, home)
    except ProfileError as error:
        return ProfileChoice(own, notice=f"The agent file of this project is ignored, because it is wrong:\n{error}")
    return _used(own) if project is None else _judge(project, own, trust)


def _used(found: FoundProfile) -> ProfileChoice:
    left = describe_unused_keys(found.understood)
    return ProfileChoice(found, notice=f"{found.path} counts. {left}" if left else None)


def _judge(project: FoundProfile, own: FoundProfile, trust: TrustStore) -> ProfileChoice:
    assert project.path is not None  # noqa: S101 -- a found file has a path
    changes = tuple(describe_changes(project.profile, own.profile))
    verdict = trust.verdict(project.path, project.digest)
    if verdict or not changes:
        return _used(project)
    if verdict is None:
        notice = f"{project.path} is ignored until you have agreed to what it would change."
        return ProfileChoice(own, project, changes, notice)
    return ProfileChoice(own, notice=f"{project.path} is ignored, as you decided; you are asked again when it changes.")
