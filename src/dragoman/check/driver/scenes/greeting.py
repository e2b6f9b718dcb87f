"""The first words."""

from dragoman.check.driver.desk import Object
from dragoman.check.driver.scenes.sessions import tidy
from dragoman.check.driver.stage import Stage, is_agreed
from dragoman.check.judge import INVENTED

FUTURE_VERSION = 65_535
"""The highest that the schema allows: no agent speaks it."""


async def greet(stage: Stage) -> None:
    """Wait for the agent to answer initialize, and say what nobody knows."""
    options = stage.options
    async with stage.open("greeting") as link:
        reply = await stage.initialize(link)
        stage.knowledge.has_answered = reply is not None and reply.ok
        if reply is None or not is_agreed(reply):
            return
        stage.knowledge.greeting = reply.fields
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


async def log_in(stage: Stage) -> None:
    """Say hello with a capability that nobody knows, and ask for a session before the login and after it."""
    async with stage.open("login") as link:
        reply = await stage.initialize(link, {f"{INVENTED}capability": {"level": 3}})
        if reply is None or not is_agreed(reply):
            return
        session_ids = [await stage.new_session(link, "before-login")]
        if stage.options.auth is not None:
            await stage.authenticate(link)
            session_ids.append(await stage.new_session(link, "after-login"))
        for session_id in filter(None, session_ids):
            await tidy(stage, link, session_id)


async def misshapen(stage: Stage) -> None:
    """Say hello with parameters that do not fit, until the agent takes them."""
    wrong: tuple[Object, ...] = ({"protocolVersion": "1"}, {})
    async with stage.open("hello with wrong parameters") as link:
        for params in wrong:
            reply = await link.request("initialize", params, stage.options.start_timeout_s)
            if reply is None or reply.ok:
                return
