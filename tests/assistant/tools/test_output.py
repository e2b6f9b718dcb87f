from dragoman.agent.turns.prepared_call import code
from dragoman.agent.workspace.shell import HEAD_BYTES, LIVE_BYTES, TAIL_BYTES, BoundedOutput


def filled(*parts):
    output = BoundedOutput()
    for part in parts:
        assert output.add(part)
    return output


def test_short_output_is_kept_completely():
    output = filled(b"a", b"", "ü".encode()[:1], "ü".encode()[1:])
    assert (output.text, output.live, output.cut) == ("aü", "aü", False)
    whole = b"x" * (HEAD_BYTES + TAIL_BYTES)
    assert filled(whole).text == whole.decode()


def test_long_output_keeps_its_beginning_and_end():
    output = filled(b"A" * HEAD_BYTES, *[b"." * 1000] * 1000, b"Z" * TAIL_BYTES)
    assert output.text == f"{'A' * HEAD_BYTES}\n[… 1,000,000 bytes were cut …]\n{'Z' * TAIL_BYTES}"
    assert output.cut
    assert output.live == f"[…]\n{'Z' * LIVE_BYTES}"


def test_no_character_is_cut_in_two():
    output = filled(b"a" + "🦊".encode() * 20_000)
    assert "\N{REPLACEMENT CHARACTER}" not in output.text
    assert "\N{REPLACEMENT CHARACTER}" not in filled(b"a" + "🦊".encode() * 5000).live


def test_fenced_code_cannot_close_its_fence():
    assert code("x").content.text == "```\nx\n```"
    assert code("```\n").content.text == "````\n```\n````"
