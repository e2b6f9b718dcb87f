import jsonschema
import pytest

from dragoman.agent.turns.prepared_call import ToolError
from dragoman.assistant.tools.arguments import decode, make_schema
from dragoman.assistant.tools.edit_file import EditFileArguments
from dragoman.assistant.tools.read_file import ReadFileArguments
from dragoman.assistant.tools.update_plan import UpdatePlanArguments
from tests.assistant.tools.working import working

PARAMETERS = {
    "read_file": {"path", "start_line", "line_count"},
    "write_file": {"path", "content"},
    "edit_file": {"path", "edits"},
    "list_directory": {"path"},
    "search_files": {"pattern", "path", "glob"},
    "run_command": {"command"},
    "update_plan": {"entries"},
}


def refusal(arguments, given):
    with pytest.raises(ToolError) as caught:
        decode(arguments, given, "a_tool")
    return str(caught.value)


async def test_tools_have_the_agreed_names_and_parameters(tmp_path):
    async with working(tmp_path) as here:
        found = {name: set(tool.definition.parameters["properties"]) for name, tool in here.tools.items()}
        assert found == PARAMETERS


async def test_schemas_are_valid_and_self_contained(tmp_path):
    async with working(tmp_path) as here:
        for tool in here.tools.values():
            schema = tool.definition.parameters
            jsonschema.Draft202012Validator.check_schema(schema)
            assert "$ref" not in str(schema)
            assert "null" not in str(schema)
            assert schema["additionalProperties"] is False


def test_enum_is_declared_as_a_string():
    items = make_schema(UpdatePlanArguments)["properties"]["entries"]["items"]
    assert items["properties"]["status"] == {"type": "string", "enum": ["completed", "in_progress", "pending"]}


def test_null_is_accepted_for_optional_arguments():
    assert decode(ReadFileArguments, {"path": "a", "start_line": None}, "read_file") == ReadFileArguments("a")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "missing required field path"),
        ({"path": 1}, "path: expected a string, got an integer"),
        ({"path": "a", "start_line": "1"}, "start_line: expected an integer, got a string"),
        ({"path": "a", "start_line": 0}, "start_line: expected an integer >= 1"),
        ({"path": "a", "lines": 3}, "unknown field lines"),
    ],
)
def test_unfitting_arguments_are_explained_with_the_expected_ones(given, words):
    said = refusal(ReadFileArguments, given)
    assert words in said
    assert said.endswith("expected {path: string, start_line?: integer, line_count?: integer}")


def test_nested_problem_is_named_by_its_path():
    said = refusal(EditFileArguments, {"path": "a", "edits": [{"old": "x", "new": "y"}, {"old": "", "new": "y"}]})
    assert "edits[1].old: expected a string of length >= 1" in said
    assert "edits: [{old: string, new: string}, …]" in said


def test_json_text_instead_of_a_list_is_refused():
    assert "edits: expected an array, got a string" in refusal(EditFileArguments, {"path": "a", "edits": "[]"})


def test_unknown_choice_is_refused_with_the_valid_ones():
    said = refusal(UpdatePlanArguments, {"entries": [{"content": "a", "priority": "urgent", "status": "pending"}]})
    assert "priority" in said
    assert "high|low|medium" in said


def test_lone_surrogates_are_refused():
    assert "not valid Unicode" in refusal(ReadFileArguments, {"path": "\ud800"})
