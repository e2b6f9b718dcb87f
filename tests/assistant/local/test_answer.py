import json
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from dragoman.assistant.models.local.answer import AnswerReader, JsonString, write_call, write_reply
from dragoman.assistant.models.message import ToolUse
from dragoman.assistant.models.model import LONG_ARGUMENTS_CHARS, ReplyText, ToolStart


def pieces(text, cuts):
    edges = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    return [text[start:end] for start, end in pairwise(edges)]


def read(chunks, *, cut_off=False):
    reader = AnswerReader()
    parts = [part for chunk in chunks for part in reader.feed(chunk)]
    return parts + list(reader.finish(cut_off=cut_off))


def said(parts):
    assert all(isinstance(part, ReplyText) and part.text for part in parts)
    return "".join(part.text for part in parts)


words = st.text(st.characters(exclude_categories=["Cs"]))
cuts = st.lists(st.integers(0, 200), max_size=20)


@given(words.filter(bool), cuts, st.booleans())
def test_a_reply_is_unescaped_however_it_is_cut(text, cuts, ascii_only):
    written = json.dumps({"reply": text}, ensure_ascii=ascii_only)
    assert said(read(pieces(written, cuts))) == text


def test_every_letter_may_come_alone():
    text = 'a "quote", a \\ backslash, a\ttab,\na line, é, 😀 and \x01'
    assert said(read(list(json.dumps({"reply": text})))) == text


def test_text_is_given_as_soon_as_it_is_certain():
    reader = AnswerReader()
    assert list(reader.feed('{"reply": "One')) == [ReplyText("One")]
    assert list(reader.feed("\\")) == []
    assert list(reader.feed("n\\ud83d")) == [ReplyText("\n")]
    assert list(reader.feed("\\ude00 two")) == [ReplyText("😀 two")]


def test_half_a_surrogate_pair_becomes_a_replacement_character():
    assert JsonString().feed('a\\ud83d b"') == "a� b"
    assert JsonString().feed('\\ud83d\\ud83d\\ude00"') == "�😀"
    assert JsonString().feed('\\ude00\\n\\ud83d\\n"') == "�\n�\n"
    assert JsonString().feed('\\uzzzz"') == "�"


def test_what_follows_the_closing_quote_is_not_said():
    assert said(read(['{"reply": "yes"', "}", "\n\n"])) == "yes"


@given(words.filter(bool), st.dictionaries(words, words | st.integers() | st.none()), cuts)
def test_a_call_is_given_when_whole_and_announced_before_only_if_it_is_long(name, arguments, cuts):
    written = write_call(name, arguments)
    *start, use = read(pieces(written, cuts))
    assert use == ToolUse(use.id, name, arguments)
    assert start in ([], [ToolStart(use.id, name)])
    assert not start or len(written) >= LONG_ARGUMENTS_CHARS


def test_a_tool_is_announced_while_its_arguments_grow_long():
    reader = AnswerReader()
    assert list(reader.feed('{"tool": "write_')) == []
    assert list(reader.feed('file", "arguments": {"content": "')) == []
    [start] = reader.feed("a" * LONG_ARGUMENTS_CHARS)
    assert isinstance(start, ToolStart)
    assert start.name == "write_file"
    assert list(reader.feed("b" * LONG_ARGUMENTS_CHARS)) == []


def test_a_call_that_was_cut_off_says_so_to_the_model():
    [use] = read(['{"tool": "write_file", "arguments": {"content": "abc'], cut_off=True)
    assert use.arguments == {}
    assert "too long" in use.problem
    [use] = read(['{"tool": "write_file", "arguments": 3}'])
    assert "not JSON" in use.problem


def test_words_that_are_not_in_the_shape_are_kept_as_text():
    assert said(read(["Hello", " there"])) == "Hello there"
    assert said(read(['{"re', 'sult": 3}'])) == '{"result": 3}'
    assert said(read(['{"rep'])) == '{"rep'


def test_two_answers_have_two_ids():
    written = write_call("a", {})
    assert read([written])[0].id != read([written])[0].id


def test_a_reply_is_written_as_it_is_read():
    assert said(read([write_reply("so\nbe it")])) == "so\nbe it"
