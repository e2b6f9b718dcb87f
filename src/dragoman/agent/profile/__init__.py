"""The agent file: `dragoman.yaml`, what it may say, where it is found, and when a project's own is believed.

    model: anthropic:claude-sonnet-4-5      # or a mapping: name, base_url, api_key, options
    instructions: Answer in one paragraph.  # or {file: prompt.md}
    permissions: {mode: code}               # how sessions begin, and what may be chosen in them
    limits: {turn_requests: 20}             # what a turn may use
    mcpServers: {time: {command: uvx}}      # the agent's own MCP servers
    rules: {tests: Run the tests.}          # and references: named texts for the model
    search: {top_n: 5}                      # what is found for a prompt

Every key may be left out, and an empty file is a good one. An unknown key or a wrong value refuses the whole file,
with all its problems by line. Paths are relative to the file. A secret may be `env://NAME`: it is looked up when it
is used and kept nowhere.

`--agent FILE` counts; else the `dragoman.yaml` of the session's directory; else the one of the home. They are not
merged. In each place a file of TsAgent will do when there is none of ours. The person wrote the first and the last;
the one in a project came with the project. That one could start programs, send the conversation elsewhere, give the
model instructions of its own or let it act unasked, so it is ignored until the person has seen what it would change
and agreed. The agreement is bound to its path and to a hash of what was read: those bytes are read once, and they are
what is hashed, shown, parsed and used.

One module a concern: `model`, `permissions`, `limits`, `servers`, `items` and `search` are what the keys say, `shape`
puts them together as the file has them, `profile` as the agent uses them; `file` reads, with `sources` for what the
file names; `lookup` finds, `changes` says what would change, `trust` remembers, `choice` decides; `editing` adds and
removes servers; `tsagent` reads the files of TsAgent, and `understood` says what of them counts. A new key is a new
module and a line in `shape`, `profile`, `file` and `changes`.
"""

from dragoman.agent.profile.changes import what_it_changes
from dragoman.agent.profile.choice import ProfileChoice, choose_profile
from dragoman.agent.profile.include import Include
from dragoman.agent.profile.items import TextItem
from dragoman.agent.profile.lookup import FILE_NAME, FoundProfile, Origin, find_profile
from dragoman.agent.profile.problem import EditRefused, ImpossibleEdit, MissingVariable, ProfileError, TrustFailed
from dragoman.agent.profile.profile import Profile
from dragoman.agent.profile.search import SearchSettings
from dragoman.agent.profile.servers import AgentServer, ToolSettings
from dragoman.agent.profile.trust import TrustStore
from dragoman.agent.profile.understood import UnderstoodKey, what_is_not_used

__all__ = [
    "FILE_NAME",
    "AgentServer",
    "EditRefused",
    "FoundProfile",
    "ImpossibleEdit",
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
    "find_profile",
    "what_is_not_used",
    "what_it_changes",
]
