"""`--url URL`: an agent that runs elsewhere, in place of one that is started."""

import argparse
import os
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from dragoman.client import Elicit, Policy, RemoteAgent, connect_url
from dragoman.client.greeting import Watch
from dragoman.client.introduction import START_TIMEOUT_S
from dragoman.protocol.address import Address, BadAddress

TOKEN_VARIABLE = "DRAGOMAN_TOKEN"  # noqa: S105 -- the name of the variable, not a token

MAX_TOKEN_BYTES = 4096
"""A file that is longer is no token."""


class Elsewhere:
    """Where the agent is, and what gets us in there."""

    def __init__(self, url: str, token: str | None) -> None:
        self.shown = Address.parse(url, token=token).shown
        self.url = url
        self.token = token

    def connect(
        self,
        *,
        policy: Policy | None,
        elicit: Elicit | None = None,
        watch: Watch | None = None,
        start_timeout_s: float = START_TIMEOUT_S,
    ) -> AbstractAsyncContextManager[RemoteAgent]:
        """Connect to it."""
        return connect_url(
            self.url, token=self.token, policy=policy, elicit=elicit, watch=watch, start_timeout_s=start_timeout_s
        )


def add_url_options(parser: argparse.ArgumentParser) -> None:
    """Let a command take `--url` and `--token-file`."""
    parser.add_argument(
        "--url",
        metavar="URL",
        help="an agent that runs already, such as http://127.0.0.1:8421/acp of dragoman serve; "
        f"its token is taken from --token-file or ${TOKEN_VARIABLE}",
    )
    parser.add_argument("--token-file", metavar="FILE", help="the file that has the token for --url")


def read_url(options: argparse.Namespace, parser: argparse.ArgumentParser, *, has_command: bool) -> Elsewhere | None:
    """Return where the agent is, if it is elsewhere; ends the process when the options make no sense."""
    if options.url is None:
        if options.token_file is not None:
            parser.error("--token-file is for --url; leave it out, or say where the agent is")
        return None
    if has_command:
        parser.error("--url is an agent that runs already, and -- CMD one to be started; leave one of them out")
    token = os.environ.get(TOKEN_VARIABLE) or None
    try:
        if options.token_file is not None:
            token = _read_token(Path(options.token_file))
        return Elsewhere(options.url, token)
    except BadAddress as error:
        parser.error(str(error))


def _read_token(path: Path) -> str:
    try:
        with path.open("rb") as file:
            text = file.read(MAX_TOKEN_BYTES + 1)
    except OSError as error:
        problem = f"the token file {path} cannot be read: {error.strerror}"
        raise BadAddress(f"{problem}; `dragoman serve` prints where its token is") from None
    token = text.decode(errors="replace").strip()
    if len(text) > MAX_TOKEN_BYTES or not token or not (token.isascii() and token.isprintable()):
        raise BadAddress(f"the file {path} has no token in it; expected one line of ASCII characters")
    return token
