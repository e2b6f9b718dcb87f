"""The user's actions with a bridge in a container: open its link and talk with its agent."""

import httpx2

from dragoman.client import connect_url


async def ask(url, token, text="Who are you?", *, directory="/work", tls=None):
    """Start a session with a prompt, and return its id and the answer."""
    async with connect_url(url, token=token, tls=tls) as agent:
        session = await agent.new_session(directory)
        return session.id, await session.ask(text)


async def open_link(link, **options):
    """Open a link like a browser and return the resulting page."""
    async with httpx2.AsyncClient(follow_redirects=True, timeout=30, **options) as browser:
        answer = await browser.get(link)
        assert answer.status_code == 200, answer.text
        return answer.text
