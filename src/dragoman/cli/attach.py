"""`dragoman attach`: ACP on stdio for an editor, to a bridge that runs already, here or on another machine."""

import argparse
import os
from pathlib import Path
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from dragoman.cli.agent_choice import add_own_token, read_token
from dragoman.cli.exit_codes import FAILED
from dragoman.cli.options import TOKEN_VARIABLE, UsageError
from dragoman.cli.output import complain
from dragoman.event_loop import Stopped, run
from dragoman.protocol.address import Address, AddressFailed, BadAddress
from dragoman.wire import StdioTransport, take_stdio

_ENDPOINT = "acp"

_BETTER = f"give it in a file, as --token-file FILE, or in the environment, as {TOKEN_VARIABLE}"


def main(options: argparse.Namespace) -> int:
    """Pass messages until the editor closes stdin; 1 when the bridge cannot be reached or lets us in no more."""
    url, token_in_url = read_url(options.url, options.agent)
    if token_in_url is not None:
        complain("attach", f"the URL has the token in it, which others on this machine can read; {_BETTER}")
    source = TokenSource(options.token_file, token_in_url)

    def find() -> Address:
        token = source.read()
        where, token = (url, token) if token else add_own_token(url)
        return Address.parse(where, token=token)

    try:
        find()
    except BadAddress as error:
        raise UsageError(str(error)) from None
    read_fd, write_fd = take_stdio()
    from dragoman.attach import Attachment, RelayLimits

    async def attach() -> None:
        editor = StdioTransport(read_fd, write_fd)
        limits = RelayLimits(wait_s=options.timeout)
        await Attachment(editor, find, _tell, limits).run()

    try:
        run(attach())
    except AddressFailed as failure:
        complain("attach", failure)
        return FAILED
    except Stopped as stopped:
        return 128 + stopped.signal_number
    return 0


class TokenSource:
    """The token of the bridge, from a file, the environment or, last, the URL; the file is read for each connection."""

    def __init__(self, file: str | None, token_in_url: str | None) -> None:
        self._file = None if file is None else Path(file)
        self._last = os.environ.get(TOKEN_VARIABLE) or token_in_url

    def read(self) -> str | None:
        """Return the token; raises UsageError for a file that never had one."""
        if self._file is not None:
            try:
                self._last = read_token(self._file)
            except UsageError:  # the bridge may be writing another one now
                if self._last is None:
                    raise
        return self._last


def read_url(given: str, agent: str | None) -> tuple[str, str | None]:
    """Return the address of an agent at a bridge, and the token that the URL carries.

    The URL may be that of the page, or of `/acp` there. The token is taken out of it: a bridge accepts none in a query.
    Raises UsageError.
    """
    try:
        parts = urlsplit(given.strip())
    except ValueError:
        raise UsageError(f"{given!r} is no URL; expected something like https://host/acp") from None
    query = parse_qsl(parts.query, keep_blank_values=True)
    fragment = dict(parse_qsl(parts.fragment))
    token = dict(query).get("token") or fragment.get("token")
    steps = [step for step in parts.path.split("/") if step]
    if _ENDPOINT not in steps[-2:]:
        steps.append(_ENDPOINT)
    if agent is not None:
        if steps[-1] != _ENDPOINT:
            raise UsageError(f"the URL names the agent {steps[-1]!r} already; leave out --agent, or the end of the URL")
        steps.append(quote(agent, safe=""))
    rest = urlencode([(name, value) for name, value in query if name != "token"])
    return parts._replace(path="/" + "/".join(steps), query=rest, fragment="").geturl(), token


def _tell(words: str) -> None:
    complain("attach", words)
