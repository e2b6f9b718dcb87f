"""The agent file: the keys of `dragoman.yaml`, the search for the file, and trust in one that came with a project.

    model: anthropic:claude-sonnet-5-5      # or a mapping: name, base_url, api_key, options
    instructions: Answer in one paragraph.  # or {file: prompt.md}
    permissions: {mode: code}               # the mode at the start, and the limits of choice
    limits: {turn_requests: 20}             # of a turn
    mcpServers: {time: {command: uvx}}      # the agent's own MCP servers
    rules: {tests: Run the tests.}          # and references: named texts for the model
    search: {top_n: 5}                      # how much is found for a prompt

Every key may be left out, and an empty file is a good one. An unknown key or a wrong value refuses the whole file,
with all its problems by line. Paths are relative to the file. A secret may be `env://NAME`: it is looked up when it
is used and kept nowhere.

`--agent FILE` counts; else the `dragoman.yaml` of the session's directory; else the one of the home. They are not
merged. In each place a file of TsAgent will do when there is none of ours. The person wrote the first and the last;
the one in a project came with the project. That one could start programs, send the conversation elsewhere, give the
model instructions of its own or let it act unasked, so it is ignored until the person has seen what it would change
and agreed. The agreement is bound to its path and to a hash of its bytes, which are read once:
the bytes that are hashed are shown, parsed and used.

`settings`, `servers` and `items` have the keys as a person writes them; `profile` has the whole file in that form and
in the form that the agent uses, and reads it; `sources` reads the files that it names; `choice` finds the file that
counts; `trust` says what a project's file would change, and keeps the person's decisions; `editing` adds and removes
servers; `tsagent` reads the files of TsAgent. A new key is a struct in `settings`, a field in both forms and a
line of the reading in `profile`, and a line in `trust`.
"""

from dragoman.agent.servers.client_requests import Include
from dragoman.assistant.profile.choice import FILE_NAME, FoundProfile, Origin, ProfileChoice, choose_profile
from dragoman.assistant.profile.items import TextItem
from dragoman.assistant.profile.profile import Profile, UnderstoodKey, describe_unused_keys
from dragoman.assistant.profile.servers import AgentServer, ToolSettings
from dragoman.assistant.profile.settings import MissingVariable, SearchSettings
from dragoman.assistant.profile.sources import ProfileError
from dragoman.assistant.profile.trust import TrustFailed, TrustStore, describe_changes

__all__ = [
    "FILE_NAME",
    "AgentServer",
    "FoundProfile",
    "Include",
    "MissingVariable",
    "Origin",
    "Profile",
    "ProfileChoice",
    "ProfileError",
    "SearchSettings",
    "TextItem",
    "ToolSettings",
    "TrustFailed",
    "TrustStore",
    "UnderstoodKey",
    "choose_profile",
    "describe_changes",
    "describe_unused_keys",
]
