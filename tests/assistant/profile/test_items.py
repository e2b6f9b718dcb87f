"""Rules and references: inline, in files, and in folders."""

import pytest

from dragoman.assistant.profile import ProfileError, TextItem, describe_changes
from dragoman.assistant.profile.profile import load_profile
from dragoman.assistant.profile.sources import MAX_FILES
from tests.assistant.profile.parsing import parse
from tests.table import each_row


@pytest.fixture
def project(tmp_path):
    (tmp_path / "project/rules").mkdir(parents=True)
    return tmp_path / "project"


def load(project, text, *, confined=True):
    (project / "dragoman.yaml").write_text(text)
    return load_profile(project / "dragoman.yaml", confined=confined)


@pytest.mark.parametrize(
    "text",
    [
        "rules: {b: two, a: {text: one, description: d, priority: 7, include: agent}, c: {text: three}}",
        """
rules:
  - {name: b, text: two}
  - {name: c, text: three}
  - {name: a, text: one, description: d, priority: 7, include: agent}
""",
    ],
)
def test_mapping_and_list_are_equivalent_and_sorted(text):
    expected = (TextItem("a", "one", "d", 7, "agent"), TextItem("b", "two"), TextItem("c", "three"))
    assert parse(text).rules == expected
    assert parse(text.replace("rules", "references")).references == expected


@each_row(
    ("text", "line", "words"),
    [
        ("rules:\n  a: {}", 2, "rules.a.text: expected either text or file"),
        ("rules:\n  a: {text: x, file: y}", 2, "rules.a.text: expected either text or file"),
        ("rules:\n  a: {txt: x}", 2, "rules.a.txt: unknown key; did you mean text?"),
        ("rules:\n  a b: x", 2, "rules.a b: expected a name of letters, digits"),
        ("rules:\n  - {name: a/b, text: x}", 2, "rules[0].name: expected a name of letters, digits"),
        ("rules:\n  - text: x", 2, "rules[0].name: is missing"),
        ("rules:\n  - {name: a}", 2, "rules[0].text: expected one of text, file and dir"),
        ("rules:\n  - {dir: x, name: a}", 2, "rules[0].dir: can be combined only"),
        ("rules:\n  - {name: a, text: x}\n  - {name: a, text: y}", 3, "rules[1]: a occurs twice"),
        ("rules:\n  a: {text: x, priority: 1000}", 2, "expected a whole number from 0 to 999, got 1000"),
        ("rules:\n  a: {text: x, include: never}", 2, "expected one of agent, always, manual, got never"),
        ("rules:\n  a: {file: nowhere.md}", 2, "rules.a.file: nowhere.md cannot be read: No such file"),
        ("rules: {dir: nowhere}", 1, "rules.dir: nowhere cannot be read: No such file"),
        ("references:\n  a: [x]", 2, "references.a: expected text or a mapping with text, file"),
        ("rules: text", 1, "rules: expected a list or a mapping, got text"),
    ],
)
def test_invalid_item_is_refused_with_line_and_message(text, line, words):
    with pytest.raises(ProfileError) as caught:
        parse(text)
    problems = [(problem.line, problem.text) for problem in caught.value.problems]
    assert any(at == line and words in problem for at, problem in problems), problems


def test_texts_come_from_a_file_and_from_a_markdown_folder(project):
    (project / "style.md").write_text("Short.")
    (project / "rules/plain one.md").write_text("\ufeffJust text.\n")
    (project / "rules/head.md").write_text(
        "---\r\nname: named\r\npriority: 1\r\ninclude: manual\r\n---\r\n\r\nText.\r\n---\r\nMore."
    )
    (project / "rules/.hidden.md").write_text("no")
    (project / "rules/other.txt").write_text("no")
    profile = load(
        project, "rules: {style: {file: style.md}, dir: rules}\nreferences: [{dir: rules, include: agent, priority: 3}]"
    ).profile
    assert profile.rules == (
        TextItem("named", "Text.\r\n---\r\nMore.", priority=1, include="manual"),
        TextItem("plain-one", "Just text."),
        TextItem("style", "Short."),
    )
    assert [(item.name, item.priority, item.include) for item in profile.references] == [
        ("named", 1, "manual"),
        ("plain-one", 3, "agent"),
    ]


def test_invalid_front_matter_is_refused_with_its_file_and_line(project):
    (project / "rules/a.md").write_text("---\nname: a\nprio: 1\n---\nText.")
    with pytest.raises(ProfileError, match=r"rules/a\.md:3: prio: unknown key"):
        load(project, "rules: {dir: rules}")


def test_file_name_cannot_break_the_line(project):
    (project / "rules/a\nb\u202e.md").write_text("---\nprio: 1\n---\nText.")
    with pytest.raises(ProfileError, match=r"rules/a\\nb\\u202e\.md:2: prio: unknown key"):
        load(project, "rules: {dir: rules}")


def test_unclosed_front_matter_is_text(project):
    (project / "rules/a.md").write_text("---\nname: a")
    assert load(project, "rules: {dir: rules}").profile.rules == (TextItem("a", "---\nname: a"),)


def test_changing_a_named_file_or_folder_changes_the_digest(project):
    rule = project / "rules/a.md"
    rule.write_text("one")
    text = "rules: {dir: rules}"
    digests = {load(project, text).digest}
    rule.write_text("two")
    digests.add(load(project, text).digest)
    rule.rename(project / "rules/b.md")
    digests.add(load(project, text).digest)
    (project / "rules/c.md").write_text("")
    digests.add(load(project, text).digest)
    assert len(digests) == 4


def test_project_file_cannot_name_texts_outside(project):
    (project.parent / "secret.md").write_text("canary")
    (project / "link.md").symlink_to(project.parent / "secret.md")
    (project / "rules/link.md").symlink_to(project.parent / "secret.md")
    (project / "up").symlink_to(project.parent)
    for text in (
        "rules: {a: {file: ../secret.md}}",
        "rules: {a: {file: link.md}}",
        "rules: {dir: rules}",
        "rules: {dir: ..}",
        "references: [{dir: up}]",
    ):
        with pytest.raises(ProfileError, match="inside") as caught:
            load(project, text)
        assert "canary" not in str(caught.value)
    assert load(project, "rules: {a: {file: link.md}}", confined=False).profile.rules == (TextItem("a", "canary"),)


def test_folder_with_too_many_files_is_refused(project):
    for number in range(MAX_FILES + 1):
        (project / f"rules/{number}.md").touch()
    with pytest.raises(ProfileError, match=f"more than {MAX_FILES} files"):
        load(project, "rules: {dir: rules}")


def test_texts_for_the_model_are_shown():
    references = "references: {r: {text: Know., include: manual}}"
    text = f"rules: {{a: Obey., long: {{text: {'x' * 250}, include: agent}}}}\n{references}"
    own = "rules: {mine: Mine.}\nreferences: {r: {text: Know., include: manual}, s: S.}"
    assert describe_changes(parse(text), parse(own)) == [
        "It would send the model the rule a, in every turn: «Obey.»",
        (
            f"It would send the model the rule long, when found by the search: «{'x' * 200}» … and 50 more characters; "
            "read them in the file before you agree"
        ),
        "It would remove your rules mine.",
        "It would remove your references s.",
    ]
