"""The resources that the sessions of a process share are released at its end."""

import asyncio
import logging

from dragoman.assistant.profile import Profile
from dragoman.assistant.profile.settings import ModelSettings
from dragoman.assistant.setup import AgentSetup
from tests.assistant.models.asking import asked
from tests.assistant.models.loopback import Chat
from tests.assistant.running import session_in
from tests.waiting import until


class Closing:
    """A model that closes in a given way."""

    def __init__(self, name, close):
        self.name = name
        self.closed = 0
        self._close = close

    async def close(self):
        self.closed += 1
        await self._close()


async def well():
    pass


async def badly():
    raise RuntimeError("the library has its own ideas")


async def never():
    await asyncio.Event().wait()


async def test_provider_connections_close_with_the_agent(tmp_path):
    async with asked(Chat(), Chat().reply(("text", "hello"))) as (provider, model):
        async with session_in(tmp_path, model=model) as (client, session_id):
            await client.prompt(session_id, "hi")
            assert client.text() == "hello"
            assert provider.connection_count == 1
        await until(lambda: provider.connection_count == 0)


async def test_every_used_model_is_closed_even_if_others_fail(tmp_path, caplog):
    made = []

    def find(name, settings):
        made.append(Closing(name, {"bad": badly, "slow": never}.get(name, well)))
        return made[-1]

    given, default = Closing("given", well), Closing("default", well)
    setup = AgentSetup(tmp_path, default_model=default, find=find)
    for name in ("bad", "slow", "good"):
        setup.find(name)
    for _ in range(2):
        setup.model_for(Profile(model=ModelSettings("of a file")))
    with caplog.at_level(logging.WARNING, "dragoman.assistant"):
        await setup.close()
        await AgentSetup(tmp_path, model=given).close()
    assert [model.closed for model in (*made, given, default)] == [1] * 7
    assert {record.getMessage() for record in caplog.records} == {
        "bad could not be closed: RuntimeError",
        "slow could not be closed: TimeoutError",
    }


async def test_provider_works_again_after_it_was_closed(tmp_path):
    async with asked(Chat(), Chat().reply(("text", "hello"))) as (provider, model):
        for _ in range(2):
            async with session_in(tmp_path, model=model) as (client, session_id):
                await client.prompt(session_id, "hi")
                assert client.text() == "hello"
        assert len(provider.requests) == 2
