"""The content of an agent file, and the errors for an invalid one."""

import os
import re
from pathlib import Path

import pytest

from dragoman.assistant.profile import MissingVariableError, Profile, ProfileError
from dragoman.assistant.profile.profile import MAX_OWN_BYTES, load_profile, parse_profile
from dragoman.assistant.profile.settings import (
    ModelOptions,
    ModelSettings,
    Permissions,
    SandboxSettings,
    SearchSettings,
    Secret,
    TurnLimits,
)
from dragoman.assistant.profile.sources import MAX_BYTES
from tests.assistant.profile.parsing import parse
from tests.table import each_row

ROOT = Path(__file__).parents[3]
CANARY = "sk-canary-7391"


def problems(text):
    with pytest.raises(ProfileError) as caught:
        parse(text)
    return [(problem.line, problem.text) for problem in caught.value.problems]


@each_row(
    ("text", "profile"),
    [
        ("", Profile()),
        ("# only a comment\n", Profile()),
        ("{}", Profile()),
        ("permissions:\nlimits:\nmodel:\nmcpServers:\nrules:\nreferences:\nsearch:\n", Profile()),
        ("model: guide", Profile(model=ModelSettings("guide"))),
        ("model: script:replies.yaml", Profile(model=ModelSettings("script:/p/replies.yaml"))),
        ("instructions: |\n  one\n  two\n", Profile(instructions="one\ntwo\n")),
        ("permissions: {mode: plan, timeout_s: 30}", Profile(permissions=Permissions("plan", timeout_s=30.0))),
        ("permissions: {mode: yolo, allow_yolo: yes}", Profile(permissions=Permissions("yolo", allow_yolo=True))),
        ("limits: {command_timeout_s: null, mcp_wait_s: 0}", Profile(limits=TurnLimits(50, None, None, 0.0))),
        ('{\n\t"limits": {"turn_requests": 3}\n}', Profile(limits=TurnLimits(3))),
        ("limits: {mcp_call_timeout_s: null}", Profile(limits=TurnLimits(mcp_call_timeout_s=None))),
        ("sandbox: off", Profile(sandbox=SandboxSettings(mode=False))),
        ("sandbox: workspace+network", Profile(sandbox=SandboxSettings("workspace+network"))),
        (
            "sandbox: {writable: [~/.cache/pip, /srv]}",
            Profile(sandbox=SandboxSettings("off", ["~/.cache/pip", "/srv"])),
        ),
        ("search: {top_k: 3, top_n: 1, min_score: 1}", Profile(search=SearchSettings(3, 1, 1.0))),
        (
            """
model:
  name: openai:x
  base_url: https://h:8/v1
  api_key: env://K
  options: {temperature: 1, max_output_tokens: 9, thought_level: low, headers: {A: b}}
""",
            Profile(
                ModelSettings(
                    "openai:x", "https://h:8/v1", Secret("env://K"), ModelOptions(1.0, 9, "low", {"A": Secret("b")})
                )
            ),
        ),
    ],
)
def test_valid_file_is_read(text, profile):
    assert parse(text) == profile


@each_row(
    ("text", "line", "words"),
    [
        ("limit: {}", 1, "limit: unknown key; did you mean limits?"),
        ("zebra: 1", 1, "zebra: unknown key; expected one of model, instructions, permissions, sandbox, limits"),
        ("model:\n  name: x\n  ApiKey: s", 3, "model.ApiKey: unknown key; did you mean api_key?"),
        ("limits:\n  turn_requests: 0", 2, "limits.turn_requests: expected a whole number of at least 1, got 0"),
        ("limits:\n\n  turn_requests: 1.5", 3, "limits.turn_requests: expected a whole number of at least 1, got a n"),
        ("limits: {turn_requests: true}", 1, "got true or false"),
        ("limits: {turn_requests: '5'}", 1, "got text"),
        ("limits: {turn_requests: null}", 1, "got nothing"),
        ("limits: {mcp_wait_s: .nan}", 1, "expected a number of at least 0, got nan"),
        ("limits: {mcp_wait_s: .inf}", 1, "got inf"),
        (f"limits: {{mcp_wait_s: 1{'0' * 400}}}", 1, "got 1000"),
        (f"limits: {{mcp_wait_s: 1{'0' * 5000}}}", 1, "the value does not match its tag or form"),
        ("limits: {command_timeout_s: 0}", 1, "expected a number above 0 or null, got 0"),
        ("limits: [1]", 1, "limits: expected a mapping with turn_requests"),
        ("limits: {? [a] : 1}", 1, "limits: expected a name as key, got a list"),
        ("limits: {}\nmodel: x\nlimits: {}", 3, "limits: is given twice"),
        ("permissions:\n  mode: cod", 2, "expected one of ask, code, plan, yolo, got cod; did you mean code?"),
        ("permissions:\n  mode: off", 2, "got true or false; put it in quotes"),
        (
            "permissions:\n  allow_yolo: false\n  mode: yolo",
            3,
            "permissions.mode: yolo needs allow_yolo: true",
        ),
        ("permissions: {allow_yolo: maybe}", 1, "expected true or false, got text"),
        ("permissions: {timeout_s: 2001-02-03}", 1, "got a date"),
        ("model: ''", 1, "model: expected the name of a model"),
        ("model: 5", 1, "got a whole number; put it in quotes"),
        ("model: {base_url: 'https://h'}", 1, "model.name: is missing"),
        ("model:\n  name: x\n  base_url: ftp://h", 3, "model.base_url: expected an http or https address"),
        ("model: {name: x, base_url: 'https://me:pw@h/'}", 1, "with no name or password in it"),
        ('model: {name: x, base_url: "https://h\\n"}', 1, "expected an http or https address"),
        ("model: {name: x, api_key: 12}", 1, "model.api_key: expected text or null, got a whole number; put it in q"),
        ("model: {name: x, api_key: 'env://'}", 1, "expected the name of an environment variable after env://"),
        ("model: {name: x, api_key: 'env://A B'}", 1, "expected the name of an environment variable after env://"),
        ("model: {name: x, options: {temperature: 3}}", 1, "expected a number from 0 to 2 or null, got 3"),
        ("model: {name: x, options: {headers: {A: [b]}}}", 1, "model.options.headers.A: expected text, got a list"),
        ("sandbox: on", 1, "sandbox: expected off, workspace or workspace+network, got true"),
        ("sandbox:\n  mode: on", 2, "sandbox.mode: expected off, workspace or workspace+network, got true"),
        ("sandbox: wrkspace", 1, "expected true or false or one of off, workspace, workspace+network or a mapping"),
        ("sandbox: {writable: [cache]}", 1, "sandbox.writable[0]: expected a path that begins with / or ~/"),
        ("sandbox: {writable: [/]}", 1, "and is not / itself"),
        ("search: {topk: 3}", 1, "search.topk: unknown key; did you mean top_k?"),
        ("search: {top_n: 0}", 1, "search.top_n: expected a whole number of at least 1, got 0"),
        ("search: {min_score: 2}", 1, "search.min_score: expected a number from 0 to 1, got 2"),
        ("limits: {mcp_call_timeout_s: 0}", 1, "expected a number above 0 or null, got 0"),
        ("model: script:~nobody-has-this-home/x", 1, "model: ~nobody-has-this-home/x is not a valid path"),
        ("instructions: 5", 1, "expected text or a mapping with file, got a whole number; put it in quotes"),
        ("instructions: {file: nowhere.md}", 1, "instructions.file: nowhere.md cannot be read: No such file"),
        ('instructions: {file: "a\\0b"}', 1, "is not a valid path"),
        (
            "- a",
            1,
            "expected a mapping with model, instructions, permissions, sandbox, limits, mcpServers, rules, references",
        ),
        ("hello", 1, "got text"),
        ("a: b: c", 1, "not YAML"),
        ("model: x\n  limits: y", 2, "not YAML"),
        ("model: x\n---\nmodel: y", 2, "not YAML"),
        ("model: *nowhere", 1, "not YAML"),
        ("limits: {allow: \x07}", 1, "not YAML: it contains a character that is not allowed"),
        ("x: 1\nlimits: {turn_requests: !!int x}", 2, "the value does not match its tag or form"),
        ("permissions: {allow_yolo: !!bool x}", 1, "the value does not match its tag or form"),
        ("model: !!python/object/apply:os.system [x]", 1, "got a list"),
        ("model: !secret x", 1, "got something else"),
        ("<<: {model: x}", 1, "<<: unknown key"),
        ('"\\e[31mred\\e[0m": 1', 1, r"\x1b[31mred"),
        ("[" * 100_000, 1, "nested more than 64 deep"),
        ("x: 1\n" + "- " * 100_000, 2, ""),
    ],
)
def test_invalid_file_is_refused_with_line_and_reason(text, line, words):
    assert any(at == line and words in problem for at, problem in problems(text)), problems(text)


@pytest.mark.parametrize(
    ("text", "line", "sentence"),
    [
        ("model: x\nrules: [a\n", 2, "the list that begins with [ on this line has no comma between its items, or no "),
        ("model: {name: x\nlimits: 1\n", 1, "the mapping that begins with { on this line has no comma between its "),
        ("model: 'x\nlimits: 1\n", 1, "the quoted text that begins on this line has no closing quote"),
        ("model: a: b\n", 1, 'a ":" is not expected here; check the indentation, or put the value in quotes'),
        ("model: @x\n", 1, "a value cannot begin with this character; put it in quotes"),
        ("model:\n\tname: x\n", 2, "this line is indented with a tab; use spaces"),
        ("model: guide\n\tname: x\n", 2, "this line is indented with a tab; use spaces"),
        ("rules:\n  - x\n\t- y\n", 3, "this line is indented with a tab; use spaces"),
        ("instructions: |\n\tBe brief.\n", 2, "this line is indented with a tab; use spaces"),
        ("rules: - x\n", 1, "a list cannot begin here; write each item on a line of its own"),
        ("model\n: x\n", 2, "this line does not continue the lines before it; check its indentation"),
        ("model: *secret\n", 1, "this alias has no anchor; put a value that begins with * in quotes"),
        ("- a\nmodel: x\n", 2, "this line does not continue the lines before it; check its indentation"),
        ("model: ]\n", 1, "a value is expected here; put a value that begins with a special character in quotes"),
        ("model: x\n---\nmodel: y\n", 2, "a second document begins here, but a file may have only one"),
        ("%YAML 3.0\n---\na", 1, "the syntax is not valid here"),
    ],
)
def test_syntax_error_names_its_line_and_the_fix(text, line, sentence):
    [(at, problem)] = problems(text)
    assert at == line
    assert problem.startswith(f"not YAML: {sentence}")


def test_all_problems_are_reported_together_in_order():
    text = "limit: {}\nmodel:\n  apikey: s\n  name: x\nlimits:\n  turn_requests: 0\npermissions: {mode: aks}\n"
    assert [line for line, _ in problems(text)] == [1, 3, 6, 7]


def test_message_names_the_file_and_each_line():
    with pytest.raises(ProfileError) as caught:
        parse("limit: 1\nmodle: 2\n")
    assert str(caught.value) == (
        "/p/dragoman.yaml:1: limit: unknown key; did you mean limits?\n"
        "/p/dragoman.yaml:2: modle: unknown key; did you mean model?"
    )


def test_instructions_come_from_a_file_next_to_the_agent_file(tmp_path):
    (tmp_path / "prompt.md").write_text("Be brief.")
    (tmp_path / "a.yaml").write_text("instructions: {file: prompt.md}")
    assert load_profile(tmp_path / "a.yaml").profile.instructions == "Be brief."


def test_changing_a_named_file_changes_the_digest(tmp_path):
    prompt, file = tmp_path / "prompt.md", tmp_path / "a.yaml"
    file.write_text("instructions: {file: prompt.md}")
    prompt.write_text("Be brief.")
    before = load_profile(file).digest
    prompt.write_text("Be wordy.")
    assert load_profile(file).digest != before


def test_confined_file_cannot_name_files_outside_its_directory(tmp_path):
    (tmp_path / "secret").write_text(CANARY)
    project = tmp_path / "project"
    project.mkdir()
    (project / "link").symlink_to(tmp_path / "secret")
    for name in ("../secret", str(tmp_path / "secret"), "link"):
        (project / "dragoman.yaml").write_text(f"model: x\ninstructions: {{file: {name}}}")
        with pytest.raises(ProfileError, match=r"yaml:2: .*inside") as caught:
            load_profile(project / "dragoman.yaml", confined=True)
        assert CANARY not in str(caught.value)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda path: path.mkdir(), "regular file"),
        (os.mkfifo, "regular file"),
        (lambda path: path.symlink_to("/dev/zero"), "regular file"),
        (lambda path: path.write_bytes(b"#" * (MAX_OWN_BYTES + 1)), "more than"),
        (lambda path: path.write_bytes(b"\xff\xfe"), "UTF-8"),
        (lambda path: path.symlink_to(path), "cannot be read"),
    ],
    ids=["directory", "fifo", "device", "huge", "binary", "loop"],
)
def test_unreadable_text_is_refused(tmp_path, make, words):
    make(tmp_path / "a.yaml")
    with pytest.raises(ProfileError, match=words):
        load_profile(tmp_path / "a.yaml")


def test_project_file_has_a_lower_size_limit_than_the_users(tmp_path):
    (tmp_path / "a.yaml").write_bytes(b"#" * (MAX_BYTES + 1))
    assert load_profile(tmp_path / "a.yaml").profile == Profile()
    with pytest.raises(ProfileError, match="more than 1,048,576 bytes"):
        load_profile(tmp_path / "a.yaml", confined=True)


@each_row(
    "text",
    [
        f"mcpServers: {{a: {{command: x, args: [-t, env://{CANARY} {CANARY}]}}}}",
        f"mcpServers: {{a: {{command: x, args: [{CANARY}], env: {{T: {CANARY}}}}}}}",
        f"mcpServers: {{a: {{url: 'https://h', headers: {{T: {CANARY}, U: [{CANARY}]}}}}}}",
        f"mcpServers: {{a: {{url: 'https://h', headers: {{T: \"{CANARY}\\n\"}}}}}}",
        f"model: {{name: x, api_key: {CANARY}, options: {{headers: {{A: {CANARY}}}}}}}",
        f"model: {{name: x, api_key: [{CANARY}]}}",
        f"model: {{name: x, apikey: {CANARY}}}",
        f"model: {{name: x, base_url: 'https://u:{CANARY}@h'}}",
        f"model: {{name: x, api_key: !{CANARY} y}}",
        f"model: {{name: x, api_key: *{CANARY}}}",
        f'model: {{name: x, api_key: "{CANARY}',
        f"model: {{name: x, api_key: {CANARY}: {CANARY}: x}}",
        f"model: {{name: x, api_key: {{{CANARY}}}}}",
        f"model: {{name: x, api_key: 'env://{CANARY} {CANARY}'}}",
    ],
)
def test_secret_appears_in_no_repr_and_no_error(text):
    try:
        shown = repr(parse(text))
    except ProfileError as error:
        shown = f"{error} {error!r} {error.problems}"
    assert CANARY not in shown


def test_secret_is_looked_up_on_every_use(monkeypatch):
    secret = parse("model: {name: x, api_key: env://DRAGOMAN_TEST_KEY}").model.api_key
    for value in ("one", "two"):
        monkeypatch.setenv("DRAGOMAN_TEST_KEY", value)
        assert secret.reveal() == value
        assert repr(secret) == "Secret(env://DRAGOMAN_TEST_KEY)"


def test_secret_may_be_written_in_the_file():
    assert parse(f"model: {{name: x, api_key: {CANARY}}}").model.api_key.reveal() == CANARY


@pytest.mark.parametrize("environment", [{}, {"NOT_THERE": ""}])
def test_missing_variable_is_named(environment):
    with pytest.raises(MissingVariableError, match="the environment variable NOT_THERE is not set") as caught:
        Secret("env://NOT_THERE").reveal(environment)
    assert caught.value.variable == "NOT_THERE"


def blocks(page):
    return re.findall(r"^```(yaml|json)\n(.*?)^```", (ROOT / page).read_text(), re.DOTALL | re.MULTILINE)


def test_every_agent_file_in_the_docs_is_valid():
    examples = blocks("docs/agent-file.md")
    assert len(examples) >= 3
    for _, example in examples:
        assert parse(example) != Profile()


def test_errors_in_the_docs_match_the_real_ones():
    shown = (ROOT / "docs/agent-file.md").read_text().split("## Mistakes")[1].split("```\n")[1]
    with pytest.raises(ProfileError) as caught:
        parse_profile("limit: 1\n\npermissions:\n  mode: cod\n", Path("/home/me/dragoman.yaml"))
    assert f"{caught.value}\n" == shown
