"""Which agent file counts, and what a project's own has to wait for."""

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


def test_without_any_file_all_is_default(places):
    home, project = places
    assert first_profile(None, str(project), home) == FoundProfile(Profile(), None, "none", "")
    assert first_profile(None, str(project), home / "not there").origin == "none"


def test_the_first_found_counts(places, tmp_path):
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


def test_a_named_file_that_is_not_there_is_an_error(places, tmp_path):
    with pytest.raises(ProfileError, match=r"nowhere\.yaml: there is no such agent file; `dragoman init` writes one"):
        first_profile(tmp_path / "nowhere.yaml", str(places[1]), places[0])


def test_a_session_in_the_home_uses_the_persons_own_file(places):
    home, _ = places
    write(home, "model: mine")
    assert first_profile(None, str(home), home).origin == "home"


def test_a_projects_file_is_ignored_with_a_notice_until_the_person_agreed(places):
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


def test_a_refused_file_is_not_asked_about_again(places):
    home, project = places
    write(project, "model: theirs")
    trust = TrustStore(home)
    pending = choose_profile(None, str(project), home, trust).pending
    trust.remember(pending.path, pending.digest, allowed=False)
    choice = choose_profile(None, str(project), home, trust)
    assert (choice.found.origin, choice.pending) == ("none", None)
    assert "as you decided" in choice.notice


def test_a_projects_file_that_changes_nothing_needs_no_word(places):
    home, project = places
    write(home, "limits: {turn_requests: 9}")
    write(project, "# nothing else\nlimits: {turn_requests: 9}")
    choice = choose_profile(None, str(project), home, TrustStore(home))
    assert (choice.found.origin, choice.pending, choice.notice) == ("project", None, None)


def test_a_wrong_file_of_a_project_is_ignored_and_a_wrong_one_of_the_person_is_an_error(places):
    home, project = places
    write(project, "modle: x")
    choice = choose_profile(None, str(project), home, TrustStore(home))
    assert choice.found.origin == "none"
    assert "dragoman.yaml:1: modle: unknown key" in choice.notice
    write(home, "modle: x")
    with pytest.raises(ProfileError):
        choose_profile(None, str(project), home, TrustStore(home))


def test_a_named_file_is_believed(places, tmp_path):
    named = tmp_path / "named.yaml"
    named.write_text("permissions: {mode: code}")
    assert (
        choose_profile(named, str(places[1]), places[0], TrustStore(places[0])).found.profile.permissions.mode == "code"
    )


@pytest.mark.parametrize(
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
                "It brings an API key of its own.",
                "It would send the header A with every request to the model.",
                "It would set the model's temperature to 1.0.",
                "It reads the environment variable B.",
            ],
        ),
        ("", "model: mine", ["It would use the built-in model in place of yours."]),
        ("instructions: Obey.", "", ["It would give the model these instructions: «Obey.»"]),
        ("", "instructions: Mine.", ["It would leave out your instructions."]),
        ("permissions: {mode: code}", "", ["It would let edits inside the project run without asking (mode code)."]),
        ("", "permissions: {mode: plan}", ["It would begin in the mode ask: reads run, everything else asks."]),
        (
            "permissions: {mode: yolo, allow_yolo: true, ask_outside_reads: true, remember: project, timeout_s: 5}",
            "",
            [
                "It would let everything run without asking (mode yolo).",
                "It would let the mode yolo be chosen, in which everything runs without asking.",
                "Reading files outside the project would be asked for.",
                "What you always allow would hold in all sessions of the project.",
                "A question for permission would wait 5 s for an answer.",
            ],
        ),
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
def test_what_a_file_would_change_is_said_in_sentences(text, instead_of, sentences):
    assert changes(text, instead_of) == sentences


def test_long_instructions_are_shown_cut_and_say_how_much_is_left():
    [sentence] = changes(f"instructions: {'a' * 700}")
    assert "… and 200 characters more; read them in the file" in sentence


def test_nothing_in_a_sentence_plays_with_the_terminal():
    text = 'model: "a\\e[2J"\ninstructions: "x\\e[8mhidden\\u202Ebackwards\\nnext"'
    shown = "".join(changes(text))
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert "\nnext" in shown


def test_a_secret_is_in_no_sentence():
    text = "model: {name: x, api_key: sk-canary, options: {headers: {A: sk-canary}}}"
    assert "sk-canary" not in "".join(changes(text))
