"""Descriptions and identities of servers, and the redaction of their secrets."""

import json
import re

import pytest

from dragoman.mcp.config_files import read_servers
from dragoman.mcp.definition import HttpServer, SseServer, StdioServer, describe, identity, redactor_of

KEY = "canary-key-9f3"
UUID = "0b7c1f0e-62e3-4c2c-9d1a-5b1f0e62e34c"
HEX = "9a7f63c1d2e84b5fa06c7d1e2f3a4b5c"

# The rule of `dragoman.text.secret`, in both directions. Each case is a server as in a configuration file, and text
# that this server writes. `«…»` marks redacted text. Everything else must stay unchanged.
REDACTED = [
    # Headers are secret by name.
    ({"headers": {"Authorization": f"Bearer {KEY}"}}, f"got «{KEY}», Bearer «{KEY}»"),
    ({"headers": {"authorization": "Basic YXBwOmh1bnRlcjJwdw=="}}, "app sent «hunter2pw» as «YXBwOmh1bnRlcjJwdw==»"),
    ({"headers": {"Cookie": "theme=dark; session=s3cr3t-c00kie"}}, "«s3cr3t-c00kie» in a dark theme"),
    ({"headers": {"X-API-Key": KEY, "X-Env": "prod"}}, f"«{KEY}» for prod"),
    ({"headers": {"apikey": KEY}}, f"«{KEY}»"),
    ({"headers": {"X-Auth-Token": KEY}}, f"«{KEY}»"),
    ({"headers": {"Content-Type": "application/json", "X-Env": "prod", "X-Region": "eu-west-1"}},
     "application/json of prod in eu-west-1"),
    ({"headers": {"User-Agent": "mytool/1.2.3-beta4", "X-Request-Id": UUID}}, f"mytool/1.2.3-beta4 {UUID}"),
    ({"headers": {"Authorization": "Bearer password"}}, "Bearer of the password"),
    # Variables are secret by whole words of their names.
    ({"env": {"PGPASS": "hunter2pw", "PGPASSWORD": "tr0ub4dor&3"}}, "«hunter2pw» and «tr0ub4dor&3»"),
    ({"env": {"MYSQL_PWD": "hunter2pw", "SMTP_PASS": "summer-2024"}}, "«hunter2pw», «summer-2024»"),
    ({"env": {"OPENAI_API_KEY": KEY, "githubToken": HEX}}, f"«{KEY}» «{HEX}»"),
    ({"env": {"SECRET_KEY_BASE": HEX, "AWS_SECRET_ACCESS_KEY": "/ab+Cd0fGhIjKlMnOpQrStUvWxYz12/4567890aB"}},
     f"«{HEX}», «/ab+Cd0fGhIjKlMnOpQrStUvWxYz12/4567890aB»"),
    ({"env": {"PASSPHRASE": "correct horse battery staple"}}, "it is «correct horse battery staple»"),
    ({"env": {"GIT_AUTHOR_NAME": "Ada Lovelace", "GIT_AUTHOR_EMAIL": "ada1815@example.com"}},
     "Author: Ada Lovelace <ada1815@example.com>"),
    ({"env": {"DB_HOST": "db-1.eu-west-1.example.com", "ROOT": "/srv/projects/app2", "WHO": UUID}},
     f"db-1.eu-west-1.example.com /srv/projects/app2 {UUID}"),
    ({"env": {"KEYBOARD": "dvorak-uk2", "MONKEY_NAME": "bonobo-17", "TOKENIZERS_PARALLELISM": "false"}},
     "dvorak-uk2 bonobo-17 false"),
    ({"env": {"GOOGLE_APPLICATION_CREDENTIALS": "/home/ada/keys/app2.json", "PWD": "/home/ada/src2"}},
     "/home/ada/keys/app2.json cannot be read in /home/ada/src2"),
    ({"env": {"TOKEN_FILE": "tokens-7f3a91.txt", "SSH_AUTH_SOCK": "/tmp/ssh-x1/agent.1"}},
     "tokens-7f3a91.txt /tmp/ssh-x1/agent.1"),
    # A value that is a common word or number protects nothing.
    ({"env": {"PASSWORD": "postgres", "API_KEY": "not-needed", "TOKEN": "none", "MAX_TOKENS": "16384"}},
     "postgres is not-needed, none of 16384"),
    # Keys of known providers have a recognisable form.
    ({"env": {"GH": "ghp_abcdefghijklmnop1234"}}, "as «ghp_abcdefghijklmnop1234»"),
    # The password of a URL is always secret, and so is a user name that is a key.
    ({"env": {"DATABASE_URL": "postgres://app:hunter2pw@db.example/app"}},
     "postgres://app:«hunter2pw»@db.example/app says app may not read db.example"),
    ({"env": {"DATABASE_URL": "postgres://app:hunter%212pw@db/app"}}, "«hunter!2pw» and «hunter%212pw»"),
    ({"env": {"SENTRY_DSN": f"https://{HEX}@o1.ingest.sentry.io/42"}}, f"https://«{HEX}»@o1.ingest.sentry.io/42"),
    ({"env": {"DATABASE_URL": "postgres://ada.lovelace1@db/app"}}, "postgres://ada.lovelace1@db/app"),
    ({"env": {"DATABASE_URL": "postgres://postgres:postgres@db/app"}}, "postgres is the password of postgres"),
    ({"args": ["postgres://app:hunter2pw@db/app"]}, "no «hunter2pw» in db/app"),
    ({"url": f"https://me:hunter2pw@host/mcp?key={KEY}&region=eu-west-1"}, f"me «hunter2pw» «{KEY}» eu-west-1"),
    ({"url": f"https://host/mcp?{KEY}"}, f"«{KEY}»"),
    ({"url": f"https://host/mcp?profile={HEX}&mode=read-only"}, f"«{HEX}» read-only"),
    # Arguments are secret by the option, variable or header in which they are written.
    ({"args": ["--api-key", KEY, f"--db-password={HEX}", "--port", "8080"]}, f"«{KEY}» «{HEX}» 8080"),
    ({"args": ["run", "-e", f"GITHUB_TOKEN={KEY}", "-e", "MODE=read-only-2"]}, f"«{KEY}» read-only-2"),
    ({"args": ["--header", f"Authorization: Bearer {KEY}", "--header", "X-Env: prod-2-eu"]}, f"«{KEY}» prod-2-eu"),
    # Variables that a file expands are secret by the variable's name.
    ({"args": ["--with", "${SECRET_THING}", "--in=${PLACE}"]}, f"«{KEY}» in bern-2-mitte"),
    ({"args": ["--in", "env://PLACE", "--with=env://SECRET_THING"]}, f"bern-2-mitte, {KEY}"),
    ({"args": ["${DATABASE_URL}"]}, "postgres://app:«hunter2pw»@db/app"),
    ({"env": {"A": "${SECRET_THING}", "B": "${PLACE}"}}, f"«{KEY}» bern-2-mitte"),
    ({"headers": {"X-A": "x ${SECRET_THING}", "X-B": "${PLACE}"}}, f"«{KEY}» bern-2-mitte"),
    ({"url": "https://host/${SECRET_THING}/${PLACE}"}, f"https://host/«{KEY}»/bern-2-mitte"),
]  # fmt: skip
ENVIRONMENT = {"SECRET_THING": KEY, "PLACE": "bern-2-mitte", "DATABASE_URL": "postgres://app:hunter2pw@db/app"}


def test_only_secrets_are_redacted_from_server_text():
    wrong = {}
    for given, marked in REDACTED:
        entry = given if "url" in given else {**given, **({"url": "https://host"} if "headers" in given else {})}
        entry = entry if "url" in entry else {"command": "x", **entry}
        [server] = read_servers(json.dumps({"mcpServers": {"it": entry}}), "/srv", ENVIRONMENT).servers
        text = marked.replace("«", "").replace("»", "")
        expected = re.sub("«.*?»", "[hidden]", marked)
        if (redacted := redactor_of(server).clean(text)) != expected:
            wrong[json.dumps(given)] = f"{redacted!r}, expected {expected!r}"
    assert wrong == {}


def test_program_is_described_by_its_command_without_secrets():
    server = StdioServer("s", "npx", ("-y", "pkg", f"--token={KEY}"), (("TOKEN", KEY),))
    assert describe(server) == "npx -y pkg --token=[hidden]"
    assert describe(StdioServer("s", "x", ("-t", KEY), secrets=(KEY,))) == "x -t [hidden]"


def test_url_is_described_without_possible_secrets():
    assert describe(HttpServer("s", f"https://me:{KEY}@host:1/mcp?key={KEY}#{KEY}")) == "https://host:1/mcp"
    assert describe(SseServer("s", f"https://host/{KEY}/sse", secrets=(KEY,))) == "https://host/[hidden]/sse"


def test_identity_depends_on_what_runs_and_not_on_its_name():
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


def test_repr_of_a_server_only_contains_its_name():
    assert KEY not in repr(
        [StdioServer("s", KEY, (KEY,), ((KEY, KEY),)), HttpServer("s", KEY, ((KEY, KEY),)), SseServer("s", KEY)]
    )


def test_arguments_with_secret_names_are_redacted():
    given = StdioServer("s", "x", ("--api-key", KEY, f"--token={KEY}2", "--verbose", "--auth-file"))
    assert describe(given) == "x --api-key [hidden] --token=[hidden] --verbose --auth-file"


def test_lists_and_dicts_are_accepted_for_fields():
    written = StdioServer("s", "x", ["-a", "b"], {"K": "1"}, secrets=["b"])
    meant = StdioServer("s", "x", ("-a", "b"), (("K", "1"),), secrets=("b",))
    assert (written, hash(written)) == (meant, hash(meant))
    assert HttpServer("s", "https://h", {"K": "1"}) == HttpServer("s", "https://h", (("K", "1"),))
    assert SseServer("s", "https://h", [["K", "1"]]) == SseServer("s", "https://h", (("K", "1"),))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: StdioServer("s", "x", "-a"), "args of StdioServer\\('s'\\) is not a sequence of str"),
        (lambda: StdioServer("s", "x", [1]), "args of StdioServer\\('s'\\) is not a sequence of str"),
        (
            lambda: StdioServer("s", "x", env={"K": 1}),
            "env of StdioServer\\('s'\\) has names or values that are not str",
        ),
    ],
)
def test_fields_of_a_wrong_type_are_refused_immediately(make, words):
    with pytest.raises(TypeError, match=words):
        make()
