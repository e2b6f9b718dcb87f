"""The first agent file for a session, trusted or not."""

from dragoman.assistant.profile.choice import find_at_home, find_explicit, find_in_project


def first_profile(explicit, cwd, home):
    if explicit is not None:
        return find_explicit(explicit)
    return find_in_project(str(cwd), home) or find_at_home(home)
