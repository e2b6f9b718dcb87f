"""Tools that the guide has never heard of: found by their words, filled from their schemas."""

import jsonschema
import pytest

from tests.assistant.guide.talking import Talk, first_call
from tests.assistant.guide.toolbox import BUILT_IN, FOREIGN, tool

OURS = {"owner": "dragoman", "repo": "core"}
ISSUES = "github__list_issues"
EVENT = "calendar__create_event"
LONDON = {"source_timezone": "Asia/Tokyo", "time": "15:00", "target_timezone": "Europe/London"}

PHRASES = [
    ("what time is it in Tokyo", "time__get_current_time", {"timezone": "Asia/Tokyo"}),
    ("What time is it in Tokyo?", "time__get_current_time", {"timezone": "Asia/Tokyo"}),
    ("what's the time in New York right now?", "time__get_current_time", {"timezone": "America/New_York"}),
    ("current time in Europe/Paris", "time__get_current_time", {"timezone": "Europe/Paris"}),
    ("tell me the time in San Francisco", "time__get_current_time", {"timezone": "America/Los_Angeles"}),
    ("get_current_time timezone=Asia/Kolkata", "time__get_current_time", {"timezone": "Asia/Kolkata"}),
    ("use time__get_current_time with timezone Europe/Rome", "time__get_current_time", {"timezone": "Europe/Rome"}),
    ('call get_current_time {"timezone": "UTC"}', "time__get_current_time", {"timezone": "UTC"}),
    ("what time is it in buenos aires", "time__get_current_time", {"timezone": "America/Argentina/Buenos_Aires"}),
    ("convert 15:00 from Tokyo to London", "time__convert_time", LONDON),
    ("convert 3pm from Tokyo to London time", "time__convert_time", LONDON),
    (
        "convert time source_timezone: Asia/Tokyo, time: 15:00, target_timezone: Europe/London",
        "time__convert_time",
        LONDON,
    ),
    ("git status of .", "git__git_status", {"repo_path": "."}),
    ("show the git status in ./core", "git__git_status", {"repo_path": "./core"}),
    ("show me the git log of /srv/app", "git__git_log", {"repo_path": "/srv/app"}),
    ("show the last 5 commits in the git log of ./core", "git__git_log", {"repo_path": "./core", "max_count": 5}),
    ("git log --repo_path . --max_count 3", "git__git_log", {"repo_path": ".", "max_count": 3}),
    ("show the staged git diff in ./core", "git__git_diff_staged", {"repo_path": "./core"}),
    (
        "git commit in ./core with message 'Fix the door'",
        "git__git_commit",
        {"repo_path": "./core", "message": "Fix the door"},
    ),
    (
        "create a git branch named topic in ./core",
        "git__git_create_branch",
        {"repo_path": "./core", "branch_name": "topic"},
    ),
    ("fetch https://example.com", "fetch__fetch", {"url": "https://example.com"}),
    ("get https://example.com/a?b=c.", "fetch__fetch", {"url": "https://example.com/a?b=c"}),
    ("please fetch the page https://example.com for me", "fetch__fetch", {"url": "https://example.com"}),
    ("fetch https://example.com raw", "fetch__fetch", {"url": "https://example.com", "raw": True}),
    ("fetch https://example.com max_length=500", "fetch__fetch", {"url": "https://example.com", "max_length": 500}),
    ("what is the weather in Paris?", "weather__get_forecast", {"city": "Paris"}),
    ("weather forecast for New York", "weather__get_forecast", {"city": "New York"}),
    ("how warm is it in Berlin", "weather__get_forecast", {"city": "Berlin"}),
    ("forecast for Oslo, days: 3", "weather__get_forecast", {"city": "Oslo", "days": 3}),
    ("weather in Rome in metric units", "weather__get_forecast", {"city": "Rome", "units": "metric"}),
    ("get forecast city='São Paulo'", "weather__get_forecast", {"city": "São Paulo"}),
    ("list the issues in dragoman/core", ISSUES, OURS),
    ("list open issues of dragoman/core", ISSUES, {**OURS, "state": "open"}),
    ("show me the closed github issues for dragoman/core", ISSUES, {**OURS, "state": "closed"}),
    ("get issue 42 of dragoman/core", "github__get_issue", {**OURS, "issue_number": 42}),
    ("show issue #7 in dragoman/core", "github__get_issue", {**OURS, "issue_number": 7}),
    ("create an issue in dragoman/core titled 'It fails'", "github__create_issue", {**OURS, "title": "It fails"}),
    (
        "create issue in dragoman/core title: It fails, body: on every Monday",
        "github__create_issue",
        {**OURS, "title": "It fails", "body": "on every Monday"},
    ),
    ("search github repositories for acp agent", "github__search_repositories", {"query": "acp agent"}),
    ("find repositories about 'tool search'", "github__search_repositories", {"query": "tool search"}),
    ("run the query select * from users", "sqlite__read_query", {"query": "select * from users"}),
    (
        "query the database: SELECT name FROM users WHERE age > 3",
        "sqlite__read_query",
        {"query": "SELECT name FROM users WHERE age > 3"},
    ),
    ("list the tables in the database", "sqlite__list_tables", {}),
    ("list tables", "sqlite__list_tables", {}),
    ("describe the table users", "sqlite__describe_table", {"table_name": "users"}),
    ("describe table 'order items'", "sqlite__describe_table", {"table_name": "order items"}),
    ("search nodes for 'Alice'", "memory__search_nodes", {"query": "Alice"}),
    ("search the knowledge graph for Alice", "memory__search_nodes", {"query": "Alice"}),
    ("add a note: the door is green", "memory__add_note", {"note": "the door is green"}),
    ("remember that the door is green", "memory__add_note", {"note": "the door is green"}),
    ("delete the entities 'Alice' and 'Bob'", "memory__delete_entities", {"entityNames": ["Alice", "Bob"]}),
    ("create an event titled 'Dentist' on 2026-03-04", EVENT, {"title": "Dentist", "date": "2026-03-04"}),
    (
        "create a calendar event 'Dentist' on 2026-03-04 at 14:30",
        EVENT,
        {"title": "Dentist", "date": "2026-03-04", "time": "14:30"},
    ),
    (
        "schedule a meeting 'Review' 2026-03-04 at 3pm",
        EVENT,
        {"title": "Review", "date": "2026-03-04", "time": "15:00"},
    ),
    ("list my calendar events", "calendar__list_events", {}),
    ("list the events on 2026-03-04", "calendar__list_events", {"date": "2026-03-04"}),
    ("echo hello world", "everything__echo", {"message": "hello world"}),
    ("echo 'a  b'", "everything__echo", {"message": "a  b"}),
    ("add 2 and 3.5", "everything__add", {"a": 2, "b": 3.5}),
    ("add a=1 b=2", "everything__add", {"a": 1, "b": 2}),
    ("print the environment variables", "everything__printEnv", {}),
    (
        "post the message 'hi all' to the channel general",
        "slack__post_message",
        {"channel": "general", "text": "hi all"},
    ),
    ("post 'hi all' to slack channel: random", "slack__post_message", {"channel": "random", "text": "hi all"}),
    (
        "send an email to a@b.org subject: Hi, body: How are you?",
        "mail__send_email",
        {"to": "a@b.org", "subject": "Hi", "body": "How are you"},
    ),
    (
        "translate 'good morning' into German",
        "translate__translate_text",
        {"text": "good morning", "target_language": "German"},
    ),
    (
        "translate good morning to french",
        "translate__translate_text",
        {"text": "good morning", "target_language": "French"},
    ),
    ("list docker containers", "docker__list_containers", {}),
    ("list the docker containers, all: true", "docker__list_containers", {"all": True}),
    ("get the stock quote for ACME", "stocks__get_quote", {"symbol": "ACME"}),
    ("stock price of ACME", "stocks__get_quote", {"symbol": "ACME"}),
    ("take a screenshot of https://example.com", "pages__take_screenshot", {"url": "https://example.com"}),
    (
        "take a full page screenshot of https://example.com",
        "pages__take_screenshot",
        {"url": "https://example.com", "fullPage": True},
    ),
]

TALK = [
    "can you write poetry about time?",
    "I have no time for this",
    "what do you think of git?",
    "is the weather a good topic for a poem?",
    "explain how databases work",
    "who invented email",
    "delete issue 5 in dragoman/core",
    "fetch me a beer",
    "add some salt",
    "the issue is that I am tired",
    "why does my calendar app crash when I scroll",
]


@pytest.mark.parametrize(("text", "name", "arguments"), PHRASES)
async def test_a_request_finds_the_tool_and_fills_its_arguments(text, name, arguments):
    assert await first_call(text, BUILT_IN + FOREIGN) == (name, arguments)


@pytest.mark.parametrize(("text", "name", "arguments"), PHRASES)
async def test_what_is_expected_here_fits_the_schemas(text, name, arguments):
    schema = next(one.parameters for one in FOREIGN if one.name == name)
    jsonschema.validate(arguments, schema)


@pytest.mark.parametrize("text", TALK)
async def test_talk_that_shares_a_word_with_a_tool_does_not_call_it(text):
    assert await first_call(text, BUILT_IN + FOREIGN) is None


ASKS = [
    ("what time is it?", "`time__get_current_time` I need `timezone`", "Tokyo", {"timezone": "Asia/Tokyo"}),
    ("what is the weather like?", "`weather__get_forecast` I need `city`: City name.", "in Lima", None),
    ("take a screenshot", "`pages__take_screenshot` I need `url`", "https://x.org", {"url": "https://x.org"}),
    ("git status", "`git__git_status` I need `repo_path`: Path to Git repository.", ".", {"repo_path": "."}),
]


@pytest.mark.parametrize(("text", "question", "answer", "arguments"), ASKS)
async def test_a_missing_argument_is_asked_for_by_name_and_the_next_prompt_is_the_answer(
    text, question, answer, arguments
):
    talk = Talk(BUILT_IN + FOREIGN)
    said, calls = await talk.say(text)
    assert question in said
    assert calls == []
    _, calls = await talk.say(answer)
    assert len(calls) == 1
    if arguments is not None:
        assert calls[0][1] == arguments


async def test_the_file_tools_of_another_server_stand_in_for_missing_ones():
    edit = {
        "type": "array",
        "items": {
            "type": "object",
            "properties": {"oldText": {"type": "string"}, "newText": {"type": "string"}},
            "required": ["oldText", "newText"],
        },
    }
    tools = [
        tool("fs__read_text_file", "Read a file", "path", path="string", head="number"),
        tool("fs__edit_file", "Edit a file", "path edits", path="string", edits=edit),
        tool("fs__search_files", "Search", "path pattern", path="string", pattern="string"),
    ]
    assert await first_call("read a.txt", tools) == ("fs__read_text_file", {"path": "a.txt"})
    changed = {"path": "a.txt", "edits": [{"oldText": "x", "newText": "y"}]}
    assert await first_call("replace x by y in a.txt", tools) == ("fs__edit_file", changed)
    assert await first_call("find TODO", tools) == ("fs__search_files", {"path": ".", "pattern": "TODO"})
