"""An agent that uses the whole kit, for the checker. It has no code for conformance."""

from dragoman.agent import Agent, BooleanOption, Mode, SelectOption, Turn
from dragoman.errors import InvalidParamsError
from dragoman.protocol import v1

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABh6FO1AAAAABJRU5ErkJggg=="


class Login:
    """A login that is always done."""

    can_log_out = False

    def offer(self, client):
        return [v1.AuthMethodAgent(id="nothing", name="Nothing to do")]

    def authenticate(self, method_id):
        if method_id != "nothing":
            raise InvalidParamsError("params.methodId", f"{method_id!r} was not offered; expected 'nothing'")

    def log_out(self):
        raise NotImplementedError


agent = Agent(
    "rich",
    version="1",
    modes=[Mode("ask", "Ask"), Mode("look", "Look", permission="reads"), Mode("all", "All", permission="all")],
    options=[SelectOption("tone", "Tone", ["short", "long"]), BooleanOption("jokes", "Jokes")],
    auth=Login(),
    content_types=("image", "audio"),
)


@agent.on_prompt
async def answer(turn: Turn):
    await turn.plan(["Look", ("Write", "in_progress"), ("Rest", "completed")])
    await turn.think("Hm.")
    await turn.say("Here is a picture: ")
    await turn.say(v1.ImageContent(data=PIXEL, mime_type="image/png"))
    async with turn.tool("Read rich.txt", kind="read", locations=[("rich.txt", 1)]) as call:
        await call.show(await turn.read_text("rich.txt", default="nothing"))
    async with turn.tool("Write rich.txt", kind="edit", locations=["rich.txt"]) as call:
        await call.show_diff("rich.txt", old=await turn.read_text("rich.txt", default=None), new="rich\n")
        if await call.allowed():
            await turn.write_text("rich.txt", "rich\n")
    async with turn.tool("Run echo", kind="execute", raw_input={"command": "echo rich"}) as call:
        if await call.allowed():
            await turn.run("echo rich", call=call)
    for tool in await turn.mcp_tools():
        await turn.call_tool(tool, {})
    await turn.ask_user("Which colour?", {"colour": {"type": "string", "title": "Colour"}})
    await turn.notice("Nearly done")
    await turn.usage(input_tokens=5, output_tokens=3, cost_usd=0.01, context_used=8, context_size=1000)
    if turn.session.mode == "ask":
        await turn.session.set_option("tone", "long")
    await turn.say(" Done.")


if __name__ == "__main__":
    agent.run()
