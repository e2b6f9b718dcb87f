"""The first words."""

from dragoman.check.driver.desk import Object
from dragoman.check.driver.scenes.sessions import tidy
from dragoman.check.driver.stage import PROTOCOL_VERSION, Stage
from dragoman.check.judge import INVENTED

FUTURE_VERSION = 65_535
"""The highest that the schema allows: no agent speaks it."""


async def greet(stage: Stage) -> None:
    """Agree on the version, and say what nobody knows."""
    options = stage.options
    async with stage.open("greeting") as link:
        reply = await stage.initialize(link)
        if reply is None or not reply.ok:
            return
        stage.greeting = reply.fields
        await link.request(f"_{INVENTED}method", {"any": None}, options.timeout_s)
        await link.request(f"{INVENTED}method", {}, options.timeout_s, request_id="a string, as an id may be")
        link.notify(f"_{INVENTED}method", {"any": None})
        link.notify(f"{INVENTED}notification", {})
        link.notify(f"$/{INVENTED}notification", {})
        await link.request(f"_{INVENTED}again", {}, options.timeout_s)
        if reply.fields.get("authMethods"):
            await link.request("authenticate", {"methodId": f"{INVENTED}login"}, options.timeout_s)


async def unknown_version(stage: Stage) -> None:
    """Ask for a version that does not exist."""
    async with stage.open("unknown version") as link:
        params: Object = {"protocolVersion": FUTURE_VERSION, "clientCapabilities": {}}
        await link.request("initialize", params, stage.options.start_timeout_s)


async def unknown_capability(stage: Stage) -> None:
    """Say hello as a client of a later version does, with a capability that this one has not."""
    async with stage.open("unknown capability") as link:
        params: Object = {
            "protocolVersion": PROTOCOL_VERSION,
            "clientCapabilities": {**link.desk.capabilities, f"{INVENTED}capability": {"level": 3}},
        }
        await link.request("initialize", params, stage.options.start_timeout_s)


async def log_in(stage: Stage) -> None:
    """Ask for a session before the login and after it, where a way to log in was named."""
    async with stage.open("login") as link:
        reply = await stage.initialize(link)
        if reply is None or not reply.ok:
            return
        session_ids = [await stage.new_session(link, "before-login")]
        if stage.options.auth is not None:
            await stage.authenticate(link)
            session_ids.append(await stage.new_session(link, "after-login"))
        for session_id in filter(None, session_ids):
            await tidy(stage, link, session_id)


async def misshapen(stage: Stage) -> None:
    """Say hello with parameters that do not fit."""
    wrong: dict[str, Object] = {"a version that is a string": {"protocolVersion": "1"}, "no version": {}}
    for name, params in wrong.items():
        async with stage.open(name) as link:
            await link.request("initialize", params, stage.options.start_timeout_s)
