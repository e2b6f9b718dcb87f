import pytest

from dragoman.protocol.update_lines import rename_session, update_lines

ONE = "00000000-0000-4000-8000-000000000001"
TWO = "00000000-0000-4000-8000-000000000002"


def test_only_line_starts_get_another_session_id():
    quoted = b'{"rawInput":%b,"text":"%b"}' % (update_lines(ONE, [b"1"])[:-1], ONE.encode())
    lines = update_lines(ONE, [quoted, b"2"]) + b'{"model":"%b"}\n' % ONE.encode()
    assert rename_session(lines, ONE, TWO) == update_lines(TWO, [quoted, b"2"]) + b'{"model":"%b"}\n' % ONE.encode()
    with pytest.raises(ValueError, match="another length"):
        rename_session(lines, ONE, "short")
