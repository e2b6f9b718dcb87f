from dragoman.assistant.search import paragraphs, text_item, tool_item, tool_text
from dragoman.assistant.search.thesaurus import all_words, split_name


def test_names_in_any_case_are_split():
    assert split_name("read_text_file") == "read text file"
    assert split_name("list-open.issues") == "list open issues"
    assert split_name("getHTTPStatusOf2Pages") == "get HTTP Status Of2 Pages"
    assert split_name("__") == ""


def test_text_is_split_into_words_and_its_names_as_well():
    assert all_words("Read it: read_me, readMe!") == ["read", "it", "read", "me", "read", "me"]


def test_tool_text_has_server_name_title_and_description():
    passage = tool_text("homeAssistant", "turn_off", "Turn off", "Turns a light off.")
    assert passage.text == "home assistant turn off: Turn off Turns a light off."
    assert passage.details == ""


def test_parameters_are_details_with_names_descriptions_and_choices():
    schema = {
        "properties": {
            "entityId": {"type": "string", "description": "Which lamp"},
            "color_mode": {"enum": ["warmWhite", "cold", 7]},
        }
    }
    assert tool_text("home", "on", parameters=schema).details == "entity Id Which lamp color mode warm White cold"


def test_tool_without_description_or_valid_schema_has_its_name():
    for schema in (
        None,
        {},
        {"properties": None},
        {"properties": []},
        {"properties": {"a": True}},
        {"properties": {1: 2}},
    ):
        assert tool_text("time", "now", description=" ", parameters=schema).text == "time now"


def test_text_is_split_at_blank_lines_and_keeps_headings():
    text = "# Style\n\n## Names\n\nUse nouns.\nAnd verbs.\n \n\nNo abbreviations.\n\n## Empty\n"
    assert paragraphs(text) == ["# Style\n## Names\nUse nouns.\nAnd verbs.", "No abbreviations.", "## Empty"]
    assert paragraphs(" \n\n ") == []


def test_rule_has_one_passage_per_paragraph_and_its_name():
    item = text_item("rule:x", "house_style", "Use nouns.\n\nBe brief.")
    assert [passage.text for passage in item.passages] == ["house style", "Use nouns.", "Be brief."]
    assert [passage.text for passage in text_item("rule:y", "empty-one", "\n").passages] == ["empty one"]


def test_tool_is_one_passage():
    assert len(tool_item("t", server="s", name="n", description="a\n\nb").passages) == 1
