"""What is shown of a server, what is hidden, and what approvals bind to."""

import pytest

from dragoman.mcp.definition import HttpServer, SseServer, StdioServer, describe, hider_of, identity, result_hider_of

KEY = "canary-key"


def test_a_program_is_described_by_its_command_without_secrets():
    server = StdioServer("s", "npx", ("-y", "pkg", f"--token={KEY}"), (("TOKEN", KEY),))
    assert describe(server) == "npx -y pkg --token=[hidden]"
    assert describe(StdioServer("s", "x", ("-t", KEY), secret_args=(KEY,))) == "x -t [hidden]"


def test_an_address_is_described_without_what_may_be_secret_in_it():
    assert describe(HttpServer("s", f"https://me:{KEY}@host:1/mcp?key={KEY}#{KEY}")) == "https://host:1/mcp"
    assert KEY not in describe(SseServer("s", f"https://host/{KEY}/sse", secret_path=True))


def test_secrets_are_hidden_in_any_text_also_a_bearers_token_alone():
    redactor = hider_of(HttpServer("s", "https://host/mcp", (("Authorization", f"Bearer {KEY}"),)))
    assert redactor.clean(f"the token {KEY} is wrong") == "the token [hidden] is wrong"


def test_words_are_not_taken_for_secrets():
    assert hider_of(StdioServer("s", "x", env=(("DEBUG", "1"),))).clean("1 error") == "1 error"


def test_identity_is_what_would_run_whatever_it_is_called():
    one = StdioServer("one", "x", ("a",), (("K", "1"),))
    assert identity(one) == identity(StdioServer("two", "x", ("a",), (("K", "1"),)))
    others = [
        StdioServer("one", "y", ("a",), (("K", "1"),)),
        StdioServer("one", "x", ("b",), (("K", "1"),)),
        StdioServer("one", "x", ("a",), (("K", "2"),)),
        StdioServer("one", "x", ("a",), (("K", "1"),), "/elsewhere"),
        HttpServer("one", "x"),
        SseServer("one", "x"),
    ]
    assert len({identity(one), *map(identity, others)}) == 1 + len(others)
    assert identity(one) == identity(StdioServer("one", "x", ("a",), (("K", "1"),), roots=False))


def test_nothing_of_a_server_but_its_name_is_in_its_repr():
    assert KEY not in repr(
        [StdioServer("s", KEY, (KEY,), ((KEY, KEY),)), HttpServer("s", KEY, ((KEY, KEY),)), SseServer("s", KEY)]
    )


def test_arguments_that_are_secret_by_their_names_are_hidden():
    given = StdioServer("s", "x", ("--api-key", KEY, f"--token={KEY}2", "--verbose", "--auth-file"))
    assert describe(given) == "x --api-key [hidden] --token=[hidden] --verbose --auth-file"


def test_lists_and_dicts_are_taken_as_programs_write_them():
    written = StdioServer("s", "x", ["-a", "b"], {"K": "1"}, secret_args=["b"])
    meant = StdioServer("s", "x", ("-a", "b"), (("K", "1"),), secret_args=("b",))
    assert (written, hash(written)) == (meant, hash(meant))
    assert HttpServer("s", "https://h", {"K": "1"}) == HttpServer("s", "https://h", (("K", "1"),))
    assert SseServer("s", "https://h", [["K", "1"]]) == SseServer("s", "https://h", (("K", "1"),))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: StdioServer("s", "x", "-a"), "args of StdioServer\\('s'\\) is no sequence of str"),
        (lambda: StdioServer("s", "x", [1]), "args of StdioServer\\('s'\\) is no sequence of str"),
        (
            lambda: StdioServer("s", "x", env={"K": 1}),
            "env of StdioServer\\('s'\\) has names or values that are no str",
        ),
    ],
)
def test_words_of_another_type_are_refused_at_once(make, words):
    with pytest.raises(TypeError, match=words):
        make()


def test_a_result_keeps_ordinary_values_and_hides_those_of_secrets():
    env = (
        ("MODE", "production"),
        ("ROOT", "/srv/projects/app"),
        ("GITHUB_TOKEN", "short"),
        ("WHO", "a1b2c3d4e5f6a7b8"),
    )
    clean = result_hider_of(StdioServer("s", "x", env=env)).clean
    assert clean("production in /srv/projects/app") == "production in /srv/projects/app"
    assert clean("short and a1b2c3d4e5f6a7b8") == "[hidden] and [hidden]"
