"""`dragoman attach`: ACP on stdio for an editor, connected to a running bridge on this or another machine."""

import argparse
import os
from pathlib import Path
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from dragoman.cli.agent_choice import add_own_token, read_token
from dragoman.cli.exit_codes import FAILED
from dragoman.cli.options import TOKEN_VARIABLE, UsageError
from dragoman.cli.output import print_error
from dragoman.event_loop import run
from dragoman.protocol.address import Address, AddressError, InvalidAddressError
from dragoman.wire import StdioTransport, claim_stdio

_ENDPOINT = "acp"

_BETTER = f"pass it with --token-file FILE or in {TOKEN_VARIABLE}"


def main(options: argparse.Namespace) -> int:
    """Relay messages until the editor closes stdin. Return 1 if the bridge is unreachable or rejects us."""
    url, token_in_url = read_url(options.url, options.agent_name)
    if token_in_url is not None:
        print_error("attach", f"the URL contains the token, which others on this machine can read; {_BETTER}")
    source = TokenSource(options.token_file, token_in_url)

    def find() -> Address:
        token = source.read()
        where, token = (url, token) if token else add_own_token(url)
        return Address.parse(where, token=token)

    try:
        find()
    except InvalidAddressError as error:
        raise UsageError(str(error)) from None
    read_fd, write_fd = claim_stdio()
    from dragoman.attach import Attachment, RelayLimits

    async def attach() -> None:
        editor = StdioTransport(read_fd, write_fd)
        limits = RelayLimits(wait_s=options.reconnect_timeout)
        await Attachment(editor, find, _print_note, limits).run()

    try:
        run(attach())
    except AddressError as failure:
        print_error("attach", failure)
        return FAILED
    return 0


class TokenSource:
    """The bridge's token from a file, the environment or the URL, in this order.

    The file is read again for each connection.
    """

    def __init__(self, file: str | None, token_in_url: str | None) -> None:
        self._file = None if file is None else Path(file)
        self._last = os.environ.get(TOKEN_VARIABLE) or token_in_url

    def read(self) -> str | None:
        """Return the token. Raises UsageError if the file never had one."""
        if self._file is not None:
            try:
                self._last = read_token(self._file)
            except UsageError:  # the bridge may be replacing the token right now
                if self._last is None:
                    raise
        return self._last


def read_url(text: str, agent: str | None) -> tuple[str, str | None]:
    """Return the address of an agent on a bridge, and the token in the URL.

    The URL may be the page or `/acp`. The token is removed from it, because a bridge accepts none in a
    query. Raises UsageError.
    """
    try:
        parts = urlsplit(text.strip())
    except ValueError:
        raise UsageError(f"{text!r} is not a URL; expected something like https://host/acp") from None
    query = parse_qsl(parts.query, keep_blank_values=True)
    fragment = dict(parse_qsl(parts.fragment))
    token = dict(query).get("token") or fragment.get("token")
    steps = [step for step in parts.path.split("/") if step]
    if _ENDPOINT not in steps[-2:]:
        steps.append(_ENDPOINT)
    if agent is not None:
        if steps[-1] != _ENDPOINT:
            raise UsageError(
                f"the URL names the agent {steps[-1]!r} already; leave out --agent-name, or the end of the URL"
            )
        steps.append(quote(agent, safe=""))
    rest = urlencode([(name, value) for name, value in query if name != "token"])
    return parts._replace(path="/" + "/".join(steps), query=rest, fragment="").geturl(), token


def _print_note(text: str) -> None:
    print_error("attach", text)
