"""TsAgent files are used without conversion, and ignored keys are reported."""

import json

import pytest

from dragoman.assistant.profile import ProfileError, TextItem, TrustStore, choose_profile, describe_unused_keys
from dragoman.assistant.profile.profile import load_profile
from dragoman.assistant.profile.servers import AgentServer, Argument, ToolSettings
from dragoman.assistant.profile.settings import ModelOptions, ModelSettings, SearchSettings, Secret, TurnLimits

NEW = """
metadata: {name: An agent, created: 2025-04-07T17:32:29.081Z, lastAccessed: 2025-04-07T17:32:29.081Z}
settings:
  maxChatTurns: 20
  maxOutputTokens: 4000
  temperature: 0
  topP: 0.05
  theme: light
  systemPath: /somewhere/bin
  model: claude:claude-sonnet-4-5
  contextTopK: 30
  contextTopN: 7
  contextIncludeScore: 0.7
  toolPermission: tool
systemPrompt: Be kind.
rules:
  - {name: do-it, description: "", priorityLevel: 50, text: Do it., include: always}
  - name: site
    description: About the site
    priorityLevel: 40
    text: It is at the address.
    include: agent
    embeddings:
      - [ -0.02, 1.5e-8 ]
references:
  - {name: facts, description: Facts, priorityLevel: 500, text: Two and two.}
providers:
  ollama: {}
  docker: {BASE_URL: "http://localhost:12434/engines/v1"}
  claude: {ANTHROPIC_API_KEY: "env://MY_KEY"}
mcpServers:
  time:
    type: stdio
    command: uvx
    args: [mcp-server-time]
    env: {TZ: UTC}
    serverToolDefaults: {permissionRequired: false, include: manual}
    tools:
      get_time: {permissionRequired: true, include: agent, embeddings: [[1]], hash: x}
      other: {hash: y}
  web: {type: streamable-http, url: "https://h/mcp", headers: {A: b}}
  events: {type: sse, url: "https://h/sse"}
  rules: {type: internal, tool: rules}
supervisors: [{id: x}]
"""


def load(directory, text, name="tsagent.yaml", **options):
    (directory / name).write_text(text)
    return load_profile(directory / name, **options)


def used_keys(loaded):
    return {row.key for row in loaded.understood if row.used}


def ignored_keys(loaded):
    return {row.key for row in loaded.understood if not row.used}


def test_complete_file_is_read(tmp_path):
    loaded = load(tmp_path, NEW)
    profile = loaded.profile
    assert profile.model == ModelSettings(
        "anthropic:claude-sonnet-4-5", None, Secret("env://MY_KEY"), ModelOptions(0.0, 4000)
    )
    assert profile.instructions == "Be kind."
    assert profile.limits == TurnLimits(20)
    assert profile.search == SearchSettings(30, 7)
    assert profile.rules == (
        TextItem("site", "It is at the address.", "About the site", 40, "agent"),
        TextItem("do-it", "Do it.", "", 50),
    )
    assert profile.references == (TextItem("facts", "Two and two.", "Facts", 500, "manual"),)
    assert profile.servers == (
        AgentServer(
            "time",
            "uvx",
            (Argument("mcp-server-time"),),
            {"TZ": Secret("UTC")},
            every_tool=ToolSettings("manual", "allow"),
            tools={"get_time": ToolSettings("agent", "ask")},
        ),
        AgentServer("web", url="https://h/mcp", headers={"A": Secret("b")}, transport="http"),
        AgentServer("events", url="https://h/sse", transport="sse"),
    )
    assert ignored_keys(loaded) == {
        "metadata",
        "settings.topP",
        "settings.theme",
        "settings.systemPath",
        "settings.contextIncludeScore",
        "providers.docker",
        "mcpServers.rules",
        "supervisors",
        "embeddings",
    }
    assert {"settings.model", "systemPrompt", "rules[0]", "references[0]", "mcpServers.time"} <= used_keys(loaded)
    assert all(row.meaning for row in loaded.understood)


OLD = {
    "metadata": {"name": "Old", "created": "x", "lastAccessed": "y"},
    "settings": {
        "maxChatTurns": "12",
        "temperature": "0.5",
        "contextTopK": "x",
        "mostRecentModel": "gemini:gemini-2.5-flash",
    },
    "providers": {"gemini": {"GOOGLE_API_KEY": "op://vault/key"}},
    "mcpServers": {
        "files": {
            "command": "./server.sh",
            "args": [],
            "toolPermissionRequired": {"serverDefault": True, "tools": {"read": False}},
            "toolInclude": {"serverDefault": "agent", "tools": {"list": "always"}},
            "toolEmbeddings": {"tools": {}},
        }
    },
}


def write_old(directory):
    (directory / "prompt.md").write_text("From the prompt.\n")
    for folder, name, head in (
        ("rules", "first", "name: renamed\ndescription: D\npriorityLevel: 9\ninclude: always\nembeddings: [[1]]"),
        ("refs", "second", "description: E"),
    ):
        (directory / folder).mkdir()
        (directory / folder / f"{name}.mdt").write_text(f"---\n{head}\n---\nText of {name}.\n")
    (directory / "rules/bare.mdt").write_text("no head")
    (directory / "rules/wrong.mdt").write_text("---\ninclude: sometimes\n---\nx")
    (directory / "rules/not-one.md").write_text("---\nname: x\n---\nx")
    return json.dumps(OLD, indent=1)


def test_older_form_is_read_with_the_files_next_to_it(tmp_path):
    loaded = load(tmp_path, write_old(tmp_path), "tsagent.json", confined=True)
    profile = loaded.profile
    assert profile.model == ModelSettings("google:gemini-2.5-flash", options=ModelOptions(0.5))
    assert profile.instructions == "From the prompt.\n"
    assert profile.limits.turn_requests == 12
    assert profile.rules == (TextItem("renamed", "Text of first.", "D", 9, "always"),)
    assert profile.references == (TextItem("second", "Text of second.", "E", 500, "manual"),)
    assert profile.servers == (
        AgentServer(
            "files",
            str(tmp_path / "server.sh"),
            every_tool=ToolSettings("agent", "ask"),
            tools={"read": ToolSettings(permission="allow"), "list": ToolSettings("always")},
        ),
    )
    assert {"prompt.md", "settings.mostRecentModel", "rules/first.mdt", "refs/second.mdt"} <= used_keys(loaded)
    assert {
        "rules/bare.mdt",
        "rules/wrong.mdt",
        "settings.contextTopK",
        "providers.gemini.GOOGLE_API_KEY",
    } <= ignored_keys(loaded)


def test_changing_a_neighbouring_file_changes_the_digest(tmp_path):
    text = write_old(tmp_path)
    digests = {load(tmp_path, text, "tsagent.json").digest}
    for name in ("prompt.md", "rules/first.mdt", "refs/second.mdt"):
        (tmp_path / name).write_text(f"{(tmp_path / name).read_text()} changed")
        digests.add(load(tmp_path, text, "tsagent.json").digest)
    assert len(digests) == 4


@pytest.mark.parametrize(
    ("permission", "expected"),
    [("always", ("ask", "ask")), ("never", ("allow", "allow")), ("tool", (None, "allow"))],
)
def test_session_permission_applies_to_every_server(tmp_path, permission, expected):
    text = (
        f"settings: {{toolPermission: {permission}}}\n"
        "mcpServers: {s: {type: stdio, command: x, args: [], tools: {t: {permissionRequired: false}}}}"
    )
    [server] = load(tmp_path, text).profile.servers
    assert (server.permission_of("other"), server.permission_of("t")) == expected


@pytest.mark.parametrize(
    ("model", "providers", "expected"),
    [
        ("openai:gpt-5", "{openai: {OPENAI_API_KEY: k}}", ModelSettings("openai:gpt-5", None, Secret("k"))),
        (
            "ollama:qwen3",
            "{ollama: {OLLAMA_HOST: 'http://h:1'}}",
            ModelSettings("ollama:qwen3", "http://h:1/v1"),
        ),
        (
            "docker:ai/smollm2",
            "{docker: {BASE_URL: 'http://h/engines/v1'}}",
            ModelSettings("openai-chat:ai/smollm2", "http://h/engines/v1"),
        ),
        ("bedrock:amazon.nova", "{bedrock: {AWS_ACCESS_KEY_ID: a}}", ModelSettings("bedrock:amazon.nova")),
        ("local:some", "{}", None),
        ("nonsense", "{}", None),
    ],
)
def test_models_have_dragomans_names(tmp_path, model, providers, expected):
    assert load(tmp_path, f"settings: {{model: '{model}'}}\nproviders: {providers}").profile.model == expected


def test_options_without_a_model_are_reported_as_ignored(tmp_path):
    loaded = load(tmp_path, "settings: {temperature: 1, maxOutputTokens: 5, model: 'local:x'}")
    assert ignored_keys(loaded) == {"settings.temperature", "settings.maxOutputTokens", "settings.model"}


def test_unusable_server_is_ignored_and_the_others_are_used(tmp_path):
    loaded = load(
        tmp_path, "settings: {}\nmcpServers: {a: {type: stdio}, b: {type: odd, url: 'http://h'}, c: {command: x}}"
    )
    assert [server.name for server in loaded.profile.servers] == ["c"]
    assert ignored_keys(loaded) == {"mcpServers.a", "mcpServers.b"}


def test_invalid_file_is_refused_with_its_lines(tmp_path):
    with pytest.raises(ProfileError, match=r"tsagent\.yaml:2: settings\.toolPermission: expected one of always, never"):
        load(tmp_path, "settings:\n  toolPermission: sometimes")
    with pytest.raises(ProfileError, match="expected a mapping"):
        load(tmp_path, "[]")


def test_file_with_tsagents_keys_may_have_any_name(tmp_path):
    assert load(tmp_path, NEW, "bob.yaml").profile.instructions == "Be kind."
    with pytest.raises(ProfileError, match="settings: unknown key"):
        load(tmp_path, "settings: {}", "bob.yaml")


def test_tsagent_file_is_found_after_dragoman_yaml(tmp_path):
    home, project = tmp_path / "home", tmp_path / "project"
    home.mkdir()
    project.mkdir()
    (home / "tsagent.json").write_text('{"systemPrompt": "json", "settings": {"theme": "x"}}')
    choice = choose_profile(None, str(project), home, TrustStore(home))
    assert (choice.found.profile.instructions, choice.found.origin) == ("json", "home")
    assert choice.notice == (
        f"{home / 'tsagent.json'} is used. It was written for TsAgent. These of its keys are not used here: "
        "settings.theme."
    )
    (home / "tsagent.yaml").write_text("systemPrompt: yaml")
    choice = choose_profile(None, str(project), home, TrustStore(home))
    assert (choice.found.profile.instructions, choice.notice) == ("yaml", None)
    (home / "dragoman.yaml").write_text("instructions: ours")
    assert choose_profile(None, str(project), home, TrustStore(home)).found.profile.instructions == "ours"


def test_project_file_waits_for_the_users_approval(tmp_path):
    home, project = tmp_path / "home", tmp_path / "project"
    home.mkdir()
    project.mkdir()
    (project / "tsagent.yaml").write_text(NEW)
    trust = TrustStore(home)
    choice = choose_profile(None, str(project), home, trust)
    assert (choice.found.origin, choice.pending.path) == ("none", project / "tsagent.yaml")
    assert (
        "It would start a program, the MCP server time: uvx mcp-server-time, with the variables TZ." in choice.changes
    )
    assert "The tools of time would run without asking." in choice.changes
    trust.remember(choice.pending.path, choice.pending.digest, allowed=True)
    choice = choose_profile(None, str(project), home, trust)
    assert choice.found.profile.instructions == "Be kind."
    assert "supervisors" in choice.notice


def test_fully_understood_file_needs_no_notice(tmp_path):
    assert describe_unused_keys(load(tmp_path, "systemPrompt: x").understood) == ""


def test_table_contains_no_secrets(tmp_path):
    text = (
        "settings: {model: 'openai:x'}\n"
        "providers: {openai: {OPENAI_API_KEY: sk-canary, X: sk-canary}, claude: {K: sk-canary}}\n"
        "mcpServers: {a: {command: x, env: {A: sk-canary}}, b: {type: odd, env: {A: sk-canary}}}"
    )
    assert "sk-canary" not in repr(load(tmp_path, text))
