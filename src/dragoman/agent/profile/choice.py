"""Which agent file counts in a session, once trust is considered."""

from pathlib import Path

import msgspec

from dragoman.agent.profile.changes import what_it_changes
from dragoman.agent.profile.lookup import FoundProfile, find_at_home, find_explicit, find_in_project
from dragoman.agent.profile.problem import ProfileError
from dragoman.agent.profile.trust import TrustStore
from dragoman.agent.profile.understood import what_is_not_used


class ProfileChoice(msgspec.Struct, frozen=True):
    """The profile that counts now; a project's file that waits for the person's word; a notice to show."""

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
        return ProfileChoice(own, notice=f"The agent file of this project is ignored, for it is wrong:\n{error}")
    return _used(own) if project is None else _judge(project, own, trust)


def _used(found: FoundProfile) -> ProfileChoice:
    left = what_is_not_used(found.understood)
    return ProfileChoice(found, notice=f"{found.path} counts. {left}" if left else None)


def _judge(project: FoundProfile, own: FoundProfile, trust: TrustStore) -> ProfileChoice:
    assert project.path is not None  # noqa: S101 -- what was found has a path
    changes = tuple(what_it_changes(project.profile, own.profile))
    verdict = trust.verdict(project.path, project.digest)
    if verdict or not changes:
        return _used(project)
    if verdict is None:
        notice = f"{project.path} is ignored until you have agreed to what it would change."
        return ProfileChoice(own, project, changes, notice)
    return ProfileChoice(own, notice=f"{project.path} is ignored, as you decided; you are asked again when it changes.")
