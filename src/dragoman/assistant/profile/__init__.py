"""The agent file: the keys of `dragoman.yaml`, the search for the file, and trust in a project's file.

    model: anthropic:claude-sonnet-5-5      # or a mapping: name, base_url, api_key, options
    instructions: Answer in one paragraph.  # or {file: prompt.md}
    permissions: {mode: code}               # the mode at the start, and the limits of choice
    limits: {turn_requests: 20}             # of a turn
    mcpServers: {time: {command: uvx}}      # the agent's own MCP servers
    rules: {tests: Run the tests.}          # and references: named texts for the model
    search: {top_n: 5}                      # how much is found for a prompt

Every key is optional, and an empty file is valid. An unknown key or a wrong value makes the whole file invalid. The
error lists all problems with their lines. Paths are relative to the file. A secret may be `env://NAME`. It is read from
the environment when it is used, and never stored.

`--agent FILE` is used first, then `dragoman.yaml` in the session's directory, then `dragoman.yaml` in the home. They
are not merged. If a place has no `dragoman.yaml`, a TsAgent file is used instead. The user wrote the first and the last
file, but a project's file came with the project. It could start programs, send the conversation to another server,
instruct the model or let it act unasked. So it is ignored until the user has seen its changes and agreed. The agreement
applies to its path and to a hash of its bytes. The bytes are read once, and the same bytes are hashed, shown, parsed
and used.

`skills` reads the skills in their folders, which are part of the profile but not of the file. A project's skills need
the same agreement as its file.

`settings`, `servers` and `items` have the keys as the user writes them. `profile` reads the whole file and has it in
that form and in the form that the agent uses. `sources` reads the files it names, and `choice` finds the file to use.
`trust` describes a project file's changes and stores the user's decisions. `editing` adds and removes servers.
`tsagent` reads TsAgent files. A new key needs a struct in `settings`, a field in both forms and a line of reading in
`profile`, and a line in `trust`.
"""

from dragoman.agent.servers.client_requests import Include
from dragoman.assistant.profile.choice import FILE_NAME, FoundProfile, ProfileChoice, choose_profile
from dragoman.assistant.profile.items import TextItem
from dragoman.assistant.profile.profile import Profile, UnderstoodKey, describe_unused_keys
from dragoman.assistant.profile.servers import AgentServer
from dragoman.assistant.profile.settings import MissingVariableError
from dragoman.assistant.profile.skills import Skill
from dragoman.assistant.profile.sources import ProfileError
from dragoman.assistant.profile.trust import TrustStore, TrustStoreError, describe_changes

__all__ = [
    "FILE_NAME",
    "AgentServer",
    "FoundProfile",
    "Include",
    "MissingVariableError",
    "Profile",
    "ProfileChoice",
    "ProfileError",
    "Skill",
    "TextItem",
    "TrustStore",
    "TrustStoreError",
    "UnderstoodKey",
    "choose_profile",
    "describe_changes",
    "describe_unused_keys",
]
