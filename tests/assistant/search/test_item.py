from dragoman.assistant.search import paragraphs, text_item, tool_item, tool_text
from dragoman.assistant.search.thesaurus import all_words, split_name


def test_names_are_taken_apart_whatever_their_case():
    assert split_name("read_text_file") == "read text file"
    assert split_name("list-open.issues") == "list open issues"
    assert split_name("getHTTPStatusOf2Pages") == "get HTTP Status Of2 Pages"
    assert split_name("__") == ""


def test_a_text_is_taken_apart_into_words_and_so_are_the_names_in_it():
    assert all_words("Read it: read_me, readMe!") == ["read", "it", "read", "me", "read", "me"]


def test_the_text_of_a_tool_has_its_server_its_name_and_what_is_said_of_it():
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


def test_a_tool_without_a_description_or_with_an_odd_schema_is_known_by_its_name():
    for schema in (
        None,
        {},
        {"properties": None},
        {"properties": []},
        {"properties": {"a": True}},
        {"properties": {1: 2}},
    ):
        assert tool_text("time", "now", description=" ", parameters=schema).text == "time now"


def test_a_text_is_split_at_blank_lines_and_a_heading_stays_with_what_it_heads():
    text = "# Style\n\n## Names\n\nUse nouns.\nAnd verbs.\n \n\nNo abbreviations.\n\n## Empty\n"
    assert paragraphs(text) == ["# Style\n## Names\nUse nouns.\nAnd verbs.", "No abbreviations.", "## Empty"]
    assert paragraphs(" \n\n ") == []


def test_a_rule_is_as_many_passages_as_it_has_paragraphs_and_the_name_is_one():
    item = text_item("rule:x", "house_style", "Use nouns.\n\nBe brief.")
    assert [passage.text for passage in item.passages] == ["house style", "Use nouns.", "Be brief."]
    assert [passage.text for passage in text_item("rule:y", "empty-one", "\n").passages] == ["empty one"]


def test_a_tool_is_one_passage():
    assert len(tool_item("t", server="s", name="n", description="a\n\nb").passages) == 1
