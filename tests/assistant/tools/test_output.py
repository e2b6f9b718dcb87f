from dragoman.agent.prepared_call import code
from dragoman.agent.workspace.shell import HEAD_BYTES, LIVE_BYTES, TAIL_BYTES, BoundedOutput


def filled(*parts):
    output = BoundedOutput()
    for part in parts:
        assert output.add(part)
    return output


def test_what_fits_is_kept_whole():
    output = filled(b"a", b"", "ü".encode()[:1], "ü".encode()[1:])
    assert (output.text, output.live, output.cut) == ("aü", "aü", False)
    whole = b"x" * (HEAD_BYTES + TAIL_BYTES)
    assert filled(whole).text == whole.decode()


def test_of_more_the_beginning_and_the_end_are_kept():
    output = filled(b"A" * HEAD_BYTES, *[b"." * 1000] * 1000, b"Z" * TAIL_BYTES)
    assert output.text == f"{'A' * HEAD_BYTES}\n[… 1,000,000 bytes left out …]\n{'Z' * TAIL_BYTES}"
    assert output.cut
    assert output.live == f"[…]\n{'Z' * LIVE_BYTES}"


def test_no_character_is_cut_in_two():
    output = filled(b"a" + "🦊".encode() * 20_000)
    assert "\N{REPLACEMENT CHARACTER}" not in output.text
    assert "\N{REPLACEMENT CHARACTER}" not in filled(b"a" + "🦊".encode() * 5000).live


def test_code_stands_in_a_fence_that_it_cannot_end():
    assert code("x").content.text == "```\nx\n```"
    assert code("```\n").content.text == "````\n```\n````"
