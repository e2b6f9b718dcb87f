"""Chooses the agent file and the skills of a session, and considers trust."""

import hashlib
from pathlib import Path
from typing import Literal

import msgspec

from dragoman.assistant.profile.profile import Profile, UnderstoodKey, describe_unused_keys, load_profile
from dragoman.assistant.profile.skills import FoundSkills, find_home_skills, find_project_skills, merge_skills
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
    problems: tuple[str, ...] = ()
    """Why skills are left out, for the user."""
    project_skills: Path | None = None
    """The first folder of the project with skills, if the profile has them."""

    @property
    def place(self) -> Path | None:
        """The project's file, or else its folder of skills, which the user has to approve."""
        return self.path if self.origin == "project" else self.project_skills


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
    own_skills = find_home_skills(home)
    skills = FoundSkills() if _is_same(cwd, home) else find_project_skills(Path(cwd))
    own = find_at_home(home) if explicit is None else find_explicit(explicit)
    if own.origin == "explicit" and own.path is not None and own.path.parent.samefile(cwd):
        return _used(_with_skills(own, own_skills, skills))  # who names a project's own file approves the project
    own = _with_skills(own, own_skills)
    try:
        project = find_in_project(cwd, home) if explicit is None else None
    except ProfileError as error:
        what = "is ignored with its skills" if skills.place else "is ignored"
        return ProfileChoice(own, notice=f"The agent file of this project {what}, because it is not valid:\n{error}")
    if project is None and skills.place is None:
        return _used(own)
    # A skill without an agent file changes the user's own profile, whose file is not part of the decision.
    changed = project or msgspec.structs.replace(own, digest="")
    return _judge(_with_skills(changed, own_skills, skills), own, trust)


def _with_skills(found: FoundProfile, own: FoundSkills, of_project: FoundSkills | None = None) -> FoundProfile:
    """Add skills. The user's own skills come first, so that a project cannot replace them."""
    project = of_project or FoundSkills()
    skills, conflicts = merge_skills(own.skills, project.skills)
    digest = found.digest
    if project.digest:
        digest = hashlib.sha256(f"{digest} {project.digest}".encode()).hexdigest()
    return msgspec.structs.replace(
        found,
        profile=msgspec.structs.replace(found.profile, skills=skills),
        digest=digest,
        problems=(*own.problems, *project.problems, *conflicts),
        project_skills=project.place,
    )


def _used(found: FoundProfile) -> ProfileChoice:
    unused = describe_unused_keys(found.understood)
    return ProfileChoice(found, notice=f"{visible(str(found.path))} is used. {unused}" if unused else None)


def _judge(project: FoundProfile, own: FoundProfile, trust: TrustStore) -> ProfileChoice:
    assert project.place is not None  # noqa: S101 -- a project's profile comes from a file or from skills
    path = visible(str(project.place))
    changes = tuple(describe_changes(project.profile, own.profile))
    verdict = trust.verdict(project.place, project.digest)
    if verdict or not changes:
        return _used(project)
    if verdict is None:
        notice = f"{path} is ignored until you agree to its changes."
        return ProfileChoice(own, project, changes, notice)
    return ProfileChoice(own, notice=f"{path} is ignored, as you decided; you are asked again when it changes.")
