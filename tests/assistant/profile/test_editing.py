"""Adding and removing servers in an agent file. The rest of the file stays the same to the byte."""

import json
import os
import stat
from pathlib import Path

import pytest
import yaml
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from dragoman.assistant.profile import ProfileError
from dragoman.assistant.profile.editing import ProfileEditError, _parses_to, add_server, remove_server
from dragoman.assistant.profile.profile import parse_profile
from dragoman.assistant.yaml_edits import COMMENT, MappingEntry, add, remove, render_flow
from dragoman.text import is_visible
from tests.table import each_row

TIME = {"command": "uvx", "args": ["mcp-server-time", "--local-timezone", "Europe/Berlin"], "env": {"TZ": "env://TZ"}}
PATH = Path("/p/dragoman.yaml")
SOAK = bool(os.environ.get("DRAGOMAN_SOAK"))


@pytest.fixture
def file(tmp_path):
    return tmp_path / "dragoman.yaml"


def edit(file, text, name="time", entry=None):
    file.write_bytes(text.encode())
    add_server(file, name, TIME if entry is None else entry)
    return file.read_bytes().decode()


def first_that_means(texts, profile):
    return next(text for text in texts if _parses_to(text, PATH, profile))


def test_missing_file_is_created(file):
    add_server(file, "time", TIME)
    assert file.read_text() == (
        f"mcpServers:\n  {COMMENT}\n  time:\n    command: uvx\n"
        "    args: [mcp-server-time, --local-timezone, Europe/Berlin]\n    env:\n      TZ: env://TZ\n"
    )
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert os.listdir(file.parent) == ["dragoman.yaml"]


@each_row(
    ("before", "after"),
    [
        ("mcpServers:\n", "mcpServers:\n  t:\n    command: x\n"),
        ("mcpServers:", "mcpServers:\n  t:\n    command: x"),
        ("mcpServers: # mine\nmodel: m\n", "mcpServers: # mine\n  t:\n    command: x\nmodel: m\n"),
        ("mcpServers:\n  # a\n\nmodel: m", "mcpServers:\n  t:\n    command: x\n  # a\n\nmodel: m"),
        ("mcpServers: ~\nmodel: m\n", "mcpServers:\n  t:\n    command: x\nmodel: m\n"),
        ("mcpServers: {}\nmodel: m\n", 'mcpServers: {"t": {"command": "x"}}\nmodel: m\n'),
        ("mcpServers: { } # c\n", 'mcpServers: {"t": {"command": "x"} } # c\n'),
        ("mcpServers: {a: {command: y}}\n", 'mcpServers: {a: {command: y}, "t": {"command": "x"}}\n'),
        ("mcpServers: {a: {command: y},}\n", 'mcpServers: {a: {command: y}, "t": {"command": "x"},}\n'),
        (
            "mcpServers:\r\n    a: # one\r\n        command: y # two\r\n        # three\r\n    # four\r\nmodel: m\r\n",
            (
                "mcpServers:\r\n    a: # one\r\n        command: y # two\r\n        # three\r\n"
                "    t:\r\n        command: x\r\n    # four\r\nmodel: m\r\n"
            ),
        ),
        (
            "limits:\n    turn_requests: 5",
            f"limits:\n    turn_requests: 5\n\nmcpServers:\n    {COMMENT}\n    t:\n        command: x",
        ),
        ("# only this", f"# only this\n\nmcpServers:\n  {COMMENT}\n  t:\n    command: x"),
        ("  model: m\n", f"  model: m\n\n  mcpServers:\n    {COMMENT}\n    t:\n      command: x\n"),
        ("model: m\n...\n", f"mcpServers:\n  {COMMENT}\n  t:\n    command: x\nmodel: m\n...\n"),
        ("instructions: |\n  a", f"mcpServers:\n  {COMMENT}\n  t:\n    command: x\ninstructions: |\n  a"),
        ("instructions: |+\n  a\n\n", f"instructions: |+\n  a\n\nmcpServers:\n  {COMMENT}\n  t:\n    command: x\n"),
        ("{}", '{"mcpServers": { "t": {"command": "x"} }}'),
        ('{\n\t"model": "m"\n}\n', '{\n\t"model": "m",\n\t"mcpServers": { "t": {"command": "x"} }\n}\n'),
        ('{"mcpServers": null}', '{"mcpServers": {"t": {"command": "x"}}}'),
        ("\ufeffmodel: m\n", f"\ufeffmodel: m\n\nmcpServers:\n  {COMMENT}\n  t:\n    command: x\n"),
        (
            "instructions: 😀é\nmcpServers:\n  a: {command: y}\n",
            "instructions: 😀é\nmcpServers:\n  a: {command: y}\n  t:\n    command: x\n",
        ),
    ],
)
def test_server_is_added_like_a_hand_written_one(file, before, after):
    assert edit(file, before, "t", {"command": "x"}) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "mcpServers:\n  # about t\n  t: {command: x}\n  # about a\n  a: {command: y}\n",
            "mcpServers:\n  # about t\n  # about a\n  a: {command: y}\n",
        ),
        ("mcpServers:\n  t: {command: x}\n", "mcpServers:\n"),
        ("mcpServers: {t: {command: x}, a: {command: y}}", "mcpServers: {a: {command: y}}"),
        ("mcpServers: {t: {command: x},}", "mcpServers: {}"),
        (
            "mcpServers: {\n  a: {command: y}, # about a\n  t: {command: x}\n}\n",
            "mcpServers: {\n  a: {command: y}, # about a\n  \n}\n",
        ),
        ("mcpServers:\n  a: {command: y}\n\n  t:\n    command: x\n", "mcpServers:\n  a: {command: y}\n\n"),
        ("model: m\nmcpServers:\n  't': {command: x}", "model: m\nmcpServers:"),
    ],
)
def test_server_is_removed_and_comments_stay(file, before, after):
    file.write_text(before)
    remove_server(file, "t")
    assert file.read_text() == after


NAMES = [
    "time",
    "my server",
    "null",
    "1",
    "true",
    "a: b",
    "#x",
    "-",
    "ö",
    "a.b",
    "{x}",
    "'q'",
    '"',
    "~",
    "😀",
    "x" * 200,
    "@scope/name",
]


@each_row("name", NAMES)
@each_row("text", ["", "mcpServers:\n", "mcpServers: {}", "{}", "model: m\n"])
def test_any_name_is_written_so_that_it_is_read_back(file, name, text):
    added = edit(file, text, name)
    assert list(yaml.safe_load(added)["mcpServers"]) == [name]
    remove_server(file, name)
    assert file.read_text() == text


def test_json_file_stays_json(file):
    text = json.dumps({"model": "m", "mcpServers": {"a": {"command": "y"}}}, indent=2)
    assert json.loads(edit(file, text))["mcpServers"]["time"] == TIME


WORDS = st.text(st.characters(exclude_categories=["C", "Zl", "Zp"]), min_size=1, max_size=12).filter(is_visible)
TEXTS = st.sampled_from(
    [
        "uvx",
        "env://KEY",
        "-y",
        "--a=b",
        "1",
        "yes",
        "~",
        "a b",
        "# no",
        "x: y",
        "[",
        "'",
        '"',
        "\t",
        "a\nb",
        "\x85",
        "\u2028",
        "",
    ]
)
ENTRIES = st.one_of(
    st.fixed_dictionaries(
        {"command": st.sampled_from(["uvx", "./run me", "yes", "5"])},
        optional={
            "args": st.lists(TEXTS, max_size=3),
            "env": st.dictionaries(st.sampled_from(["A", "B C", "1"]), TEXTS, max_size=2),
            "tools": st.dictionaries(WORDS, st.just({"include": "agent", "permission": "ask"}), max_size=2),
        },
    ),
    st.fixed_dictionaries(
        {"url": st.just("https://h/mcp?x=1")}, optional={"trust": st.booleans(), "type": st.just("sse")}
    ),
)
BREAKS = st.sampled_from(["\n", "\r\n", "\r"])
COMMENTS = st.sampled_from(["", "# c", "    # deep", "  # two", f"  {COMMENT}", "#mcpServers:"])
SERVERS = st.sampled_from(
    [
        None,
        ["mcpServers:"],
        ["mcpServers:   # c"],
        ["mcpServers: {}"],
        ["mcpServers: {", "  }"],
        ["mcpServers: { # c", "  }"],
        ["'mcpServers' : {a: {command: y}, }"],
        ["mcpServers: { a: {command: y} }"],
        ["mcpServers: {", '  "a": {"command": "y"}, # c', "  b: {command: z} # d", " }"],
        ["mcpServers:", "  a:", "    command: y"],
        ["mcpServers:", "    a: {command: y} # c", "", "    b:", "        command: y", "        args:", "        - z"],
        ["mcpServers:", f"  {COMMENT}", "  a:", "    args: [q]", "    command: |-", "      y", ""],
        ["mcpServers: &all", "  a: {command: y}"],
    ]
)
OTHERS = st.sampled_from(
    [
        ["model: m"],
        ["limits:", "    turn_requests: 5", "    # c"],
        ["instructions: |", "  one", "", "  # two", ""],
        ["instructions: |+", "  one", "", ""],
        ["instructions: >-", "  one", "  two"],
        ["instructions: 'one", "", "  two'"],
        ["instructions: 😀é plain", "  goes on"],
        ["rules:", "- {name: a, text: b}"],
    ]
)


@st.composite
def files(draw):
    """Return an agent file in block style, with or without the key."""
    parts = draw(st.lists(OTHERS, max_size=3, unique_by=lambda lines: lines[0].partition(":")[0]))
    servers = draw(SERVERS)
    if servers is not None:
        parts.insert(draw(st.integers(0, len(parts))), servers)
    lines = []
    for part in parts:
        lines += [*part, *draw(st.lists(COMMENTS, max_size=2))]
    lines = [*draw(st.lists(COMMENTS, max_size=1)), *draw(st.sampled_from([[], ["---"]])), *lines]
    newline = draw(BREAKS)
    return newline.join(lines) + draw(st.sampled_from(["", newline, newline * 2]))


def add_and_remove(text, change):
    before = parse_profile(text, PATH)
    assume(text)
    assume(change.name not in [server.name for server in before.servers])
    [server] = parse_profile(render_flow({"mcpServers": {change.name: change.value}}), PATH).servers
    added = first_that_means(add(text, change), replace(before, servers=(*before.servers, server)))
    return added, first_that_means(remove(added, change), before)


@pytest.mark.soak
@given(files(), WORDS, ENTRIES)
@settings(max_examples=2000 if SOAK else 100)
@example("mcpServers:", "t", {"command": "x"})
def test_added_server_is_removed_to_the_byte(text, name, entry):
    _, removed = add_and_remove(text, MappingEntry("mcpServers", name, entry))
    assert removed == text


@given(st.integers(0, 8), st.sampled_from([{}, {"mcpServers": {}}, {"mcpServers": {"a": {"url": "http://h"}}}]), WORDS)
@settings(max_examples=50)
def test_server_added_to_json_is_removed_to_the_byte(indent, servers, name):
    text = json.dumps({**servers, "model": "m"}, indent=indent or None)
    added, removed = add_and_remove(text, MappingEntry("mcpServers", name, {"command": "x"}))
    assert json.loads(added)["mcpServers"][name] == {"command": "x"}
    assert removed == text


@pytest.mark.parametrize(
    ("text", "name", "entry", "words"),
    [
        ("mcpServers: {time: {command: x}}", "time", TIME, "already has a server time; remove that one first"),
        ("", "time", {"url": "https://h", "command": "x"}, "mcpServers.time.url: expected either command or url"),
        ("", "time", {"comand": "x"}, "did you mean command?"),
        ("", "a\nb", TIME, "expected a name of printable characters"),
        ("model: &m {name: x, options: {headers: &h {}}}\nmcpServers: *h", "time", TIME, "edit the file yourself"),
        ("? mcpServers\n: \n", "time", TIME, "edit the file yourself"),
        ("metadata: {name: x}\nsettings: {}\n", "time", TIME, "a TsAgent file, which dragoman can only read"),
    ],
)
def test_refused_addition_leaves_the_file_unchanged(file, text, name, entry, words):
    file.write_text(text)
    with pytest.raises(ProfileEditError) as caught:
        add_server(file, name, entry)
    assert words in str(caught.value)
    assert file.read_text() == text


def test_missing_server_cannot_be_removed(file):
    file.write_text("mcpServers: {a: {command: x}, b: {command: y}}")
    with pytest.raises(ProfileEditError, match="it has no server time; its servers are: a, b"):
        remove_server(file, "time")
    with pytest.raises(ProfileEditError, match="its servers are: none"):
        remove_server(file.parent / "nowhere.yaml", "time")


def test_invalid_file_is_refused_with_its_lines(file):
    file.write_text("model: m\nmodle: x\n")
    with pytest.raises(ProfileError, match=r"yaml:2: modle"):
        add_server(file, "time", TIME)
    file.write_text("a: b: c")
    with pytest.raises(ProfileError, match="not YAML"):
        add_server(file, "time", TIME)
    file.write_bytes(b"\xff")
    with pytest.raises(ProfileEditError, match="not UTF-8"):
        add_server(file, "time", TIME)


def test_file_mode_stays_and_a_link_is_followed(tmp_path):
    target, link = tmp_path / "real" / "agent.yaml", tmp_path / "dragoman.yaml"
    target.parent.mkdir()
    target.write_text("model: m\n")
    target.chmod(0o640)
    link.symlink_to("real/agent.yaml")
    add_server(link, "time", TIME)
    assert link.is_symlink()
    assert "time:" in target.read_text()
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    remove_server(link, "time")
    assert target.read_text() == "model: m\n"
    assert os.listdir(target.parent) == ["agent.yaml"]


def test_paths_of_an_entry_are_relative_to_the_file(file):
    edit(file, "", "s", {"command": "./bin/server", "cwd": "data"})
    [server] = parse_profile(file.read_text(), file).servers
    assert (server.command, server.cwd) == (str(file.parent / "bin/server"), str(file.parent / "data"))


def test_missing_directory_is_a_clear_error(tmp_path):
    with pytest.raises(ProfileEditError, match="cannot be written: No such file or directory"):
        add_server(tmp_path / "no" / "dragoman.yaml", "time", TIME)
