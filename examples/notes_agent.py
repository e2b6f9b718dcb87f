from dragoman.agent import Agent, Turn

agent = Agent("notes", version="1.0.0", title="Notes")


@agent.on_prompt
async def answer(turn: Turn) -> None:
    await turn.think("Let me see. ")
    await turn.say(f"You said: {turn.text}. ")
    async with turn.tool("Count words", kind="think", raw_input={"text": turn.text}) as call:
        await call.show(f"{len(turn.text.split())} words")
    if turn.text.startswith("save "):
        async with turn.tool("Write notes.txt", kind="edit", locations=["notes.txt"]) as call:
            await call.show_diff("notes.txt", old=await turn.read_text("notes.txt", default=None), new=turn.text)
            if await call.allowed():
                await turn.write_text("notes.txt", turn.text)
    turn.session.state["prompts"] = turn.session.state.get("prompts", 0) + 1
    await turn.say(f"Prompt number {turn.session.state['prompts']}.")


@agent.command("count", "How many prompts this session has had")
async def count(turn: Turn) -> None:
    await turn.say(str(turn.session.state.get("prompts", 0)))


if __name__ == "__main__":
    agent.run()
