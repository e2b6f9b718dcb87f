"""The agent file: `dragoman.yaml`, what it may say, where it is found, and when a project's own is believed.

    model: anthropic:claude-sonnet-4-5      # or a mapping: name, base_url, api_key, options
    instructions: Answer in one paragraph.  # or {file: prompt.md}
    permissions: {mode: code}               # how sessions begin, and what may be chosen in them
    limits: {turn_requests: 20}             # what a turn may use

Every key may be left out, and an empty file is a good one. An unknown key or a wrong value refuses the whole file,
with all its problems by line. Paths are relative to the file. A secret may be `env://NAME`: it is looked up when it
is used and kept nowhere.

`--agent FILE` counts; else the `dragoman.yaml` of the session's directory; else the one of the home. They are not
merged. The person wrote the first and the last; the one in a project came with the project. That one could send the
conversation elsewhere, give the model instructions of its own or let it act unasked, so it is ignored until the
person has seen what it would change and agreed. The agreement is bound to its path and to a hash of what was read:
those bytes are read once, and they are what is hashed, shown, parsed and used.

One module a concern: `model`, `permissions` and `limits` are what the keys say, `shape` puts them together as the
file has them, `profile` as the agent uses them; `file` reads, `lookup` finds, `changes` says what would change,
`trust` remembers, `choice` decides. A new key is a new module and a line in `shape`, `profile`, `file` and `changes`.
"""

from dragoman.agent.profile.changes import what_it_changes
from dragoman.agent.profile.choice import Choice, choose_profile
from dragoman.agent.profile.lookup import FILE_NAME, Found, Origin, find_profile
from dragoman.agent.profile.problem import MissingVariable, ProfileError, TrustFailed
from dragoman.agent.profile.profile import Profile
from dragoman.agent.profile.trust import Trust

__all__ = [
    "FILE_NAME",
    "Choice",
    "Found",
    "MissingVariable",
    "Origin",
    "Profile",
    "ProfileError",
    "Trust",
    "TrustFailed",
    "choose_profile",
    "find_profile",
    "what_it_changes",
]
