"""Which agent file is used, and what a project's file must wait for."""

import hashlib

import pytest

from dragoman.assistant.profile import (
    FoundProfile,
    Profile,
    ProfileError,
    TrustStore,
    choose_profile,
)
from tests.assistant.profile.finding import first_profile
from tests.assistant.profile.parsing import changes
from tests.table import each_row


@pytest.fixture
def places(tmp_path):
    home, project = tmp_path / "home", tmp_path / "project"
    home.mkdir()
    project.mkdir()
    return home, project


def write(directory, text):
    path = directory / "dragoman.yaml"
    path.write_text(text)
    return path


def test_defaults_apply_without_any_file(places):
    home, project = places
    assert first_profile(None, str(project), home) == FoundProfile(Profile(), None, "none", "")
    assert first_profile(None, str(project), home / "not there").origin == "none"


def test_first_file_found_is_used(places, tmp_path):
    home, project = places
    named = tmp_path / "named.yaml"
    named.write_text("model: named")
    write(home, "model: at-home")
    assert first_profile(None, str(project), home).profile.model.name == "at-home"
    path = write(project, "model: in-project")
    found = first_profile(None, str(project), home)
    assert (found.profile.model.name, found.path, found.origin) == ("in-project", path, "project")
    assert found.digest == hashlib.sha256(b"model: in-project").hexdigest()
    found = first_profile(named, str(project), home)
    assert (found.profile.model.name, found.origin) == ("named", "explicit")


def test_named_folder_means_the_file_in_it(places, tmp_path):
    home, project = places
    folder = tmp_path / "folder"
    folder.mkdir()
    with pytest.raises(ProfileError, match=r"there is no dragoman\.yaml in this folder"):
        first_profile(folder, str(project), home)
    path = write(folder, "model: in-folder")
    found = first_profile(folder, str(project), home)
    assert (found.profile.model.name, found.path, found.origin) == ("in-folder", path, "explicit")


def test_missing_named_file_is_an_error(places, tmp_path):
    with pytest.raises(ProfileError, match=r"nowhere\.yaml: there is no such agent file; `dragoman init` writes one"):
        first_profile(tmp_path / "nowhere.yaml", str(places[1]), places[0])


def test_session_in_the_home_uses_the_users_own_file(places):
    home, _ = places
    write(home, "model: mine")
    assert first_profile(None, str(home), home).origin == "home"


def test_project_file_is_ignored_with_a_notice_until_approved(places):
    home, project = places
    write(home, "model: mine")
    path = write(project, "model: theirs")
    trust = TrustStore(home)
    choice = choose_profile(None, str(project), home, trust)
    assert choice.found.profile.model.name == "mine"
    assert choice.pending.profile.model.name == "theirs"
    assert choice.changes == ("It would use the model theirs.",)
    assert str(path) in choice.notice

    trust.remember(choice.pending.path, choice.pending.digest, allowed=True)
    choice = choose_profile(None, str(project), home, trust)
    assert (choice.found.profile.model.name, choice.pending, choice.notice) == ("theirs", None, None)

    write(project, "model: theirs ")
    assert choose_profile(None, str(project), home, trust).pending is not None


def test_refused_file_is_not_asked_about_again(places):
    home, project = places
    write(project, "model: theirs")
    trust = TrustStore(home)
    pending = choose_profile(None, str(project), home, trust).pending
    trust.remember(pending.path, pending.digest, allowed=False)
    choice = choose_profile(None, str(project), home, trust)
    assert (choice.found.origin, choice.pending) == ("none", None)
    assert "as you decided" in choice.notice


def test_project_file_without_changes_needs_no_approval(places):
    home, project = places
    write(home, "limits: {turn_requests: 9}")
    write(project, "# nothing else\nlimits: {turn_requests: 9}")
    choice = choose_profile(None, str(project), home, TrustStore(home))
    assert (choice.found.origin, choice.pending, choice.notice) == ("project", None, None)


def test_invalid_project_file_is_ignored_but_the_users_is_an_error(places):
    home, project = places
    write(project, "modle: x")
    choice = choose_profile(None, str(project), home, TrustStore(home))
    assert choice.found.origin == "none"
    assert "dragoman.yaml:1: modle: unknown key" in choice.notice
    write(home, "modle: x")
    with pytest.raises(ProfileError):
        choose_profile(None, str(project), home, TrustStore(home))


def test_named_file_is_trusted(places, tmp_path):
    named = tmp_path / "named.yaml"
    named.write_text("permissions: {mode: code}")
    assert (
        choose_profile(named, str(places[1]), places[0], TrustStore(places[0])).found.profile.permissions.mode == "code"
    )


@each_row(
    ("text", "instead_of", "sentences"),
    [
        ("", "", []),
        ("model: a", "model: a", []),
        ("model: openai:x", "", ["It would use the model openai:x."]),
        (
            "model: {name: 'openai:x', base_url: 'https://h/v1', api_key: 'env://K'}",
            "",
            [
                "It would use the model openai:x at https://h/v1, which would receive the conversation.",
                "It reads the environment variable K.",
            ],
        ),
        (
            "model: {name: x, api_key: k, options: {temperature: 1, headers: {A: 'env://B'}}}",
            "",
            [
                "It would use the model x.",
                "It contains its own API key.",
                "It would send the header A with every request to the model.",
                "It would set the model's temperature to 1.0.",
                "It reads the environment variable B.",
            ],
        ),
        ("", "model: mine", ["It would use the built-in model instead of yours."]),
        ("instructions: Obey.", "", ["It would send the model these instructions: «Obey.»"]),
        ("", "instructions: Mine.", ["It would remove your instructions."]),
        (
            "permissions: {mode: code}",
            "",
            ["Sessions would begin in the mode code: edits inside the project run without asking."],
        ),
        (
            "",
            "permissions: {mode: plan}",
            ["Sessions would begin in the mode ask: reading is allowed, everything else asks."],
        ),
        (
            "permissions: {mode: yolo, allow_yolo: true, ask_outside_reads: true, remember: project, timeout_s: 5}",
            "",
            [
                "Sessions would begin in the mode yolo: everything runs without asking.",
                "It would allow the mode yolo, in which everything runs without asking.",
                "Reading files outside the project would ask.",
                "What you always allow would be allowed in all sessions of the project.",
                "A permission request would wait 5 s for an answer.",
            ],
        ),
        (
            "sandbox: {mode: workspace, writable: [~/.cache/pip]}",
            "sandbox: {writable: [~/mine]}",
            [
                "Commands would run in a sandbox without network. In the mode code they would not ask.",
                "Commands in the sandbox could change ~/.cache/pip.",
                "Commands in the sandbox could no longer change ~/mine.",
            ],
        ),
        ("sandbox: off", "sandbox: workspace", ["Commands would run without a sandbox."]),
        (
            "limits: {turn_requests: 9999, output_tokens: 5, command_timeout_s: null}",
            "",
            [
                "The limit turn_requests would be 9,999 instead of 50.",
                "The limit output_tokens would be 5 instead of none.",
                "The limit command_timeout_s would be none instead of 600.",
            ],
        ),
    ],
)
def test_changes_of_a_file_are_described_in_sentences(text, instead_of, sentences):
    assert changes(text, instead_of) == sentences


def test_long_instructions_are_shortened_with_a_count():
    [sentence] = changes(f"instructions: {'a' * 700}")
    assert "… and 200 more characters; read them in the file" in sentence


def test_sentences_contain_no_control_characters():
    text = 'model: "a\\e[2J"\ninstructions: "x\\e[8mhidden\\u202Ebackwards\\nnext"'
    shown = "".join(changes(text))
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert r"\nnext" in shown
    assert "\n" not in shown


def test_sentences_contain_no_secrets():
    text = "model: {name: x, api_key: sk-canary, options: {headers: {A: sk-canary}}}"
    assert "sk-canary" not in "".join(changes(text))
