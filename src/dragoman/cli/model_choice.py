"""The choice of a model or an agent at a terminal, for `chat` and `run`.

`choose_at_start` asks once, where nothing is configured, a person is there and something was found on this machine.
The answer is remembered, also that it stays with `guide`. `ModelQuestion` is `:connect` of the chat: it asks the agent
itself, by the extension requests of its `dragoman/start`, so that the open session takes the model at once.
"""

import argparse
import asyncio
import getpass
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from dragoman.assistant.auth import configured_model
from dragoman.assistant.options import GUIDE
from dragoman.assistant.preferences import PreferenceFile
from dragoman.assistant.start.connecting import Connected, NotConnected, Wish, connect_model
from dragoman.assistant.start.offers import Offers, ProviderOffer, find_offers
from dragoman.cli.agent_choice import ChosenAgent
from dragoman.client.installed_agents import InstalledAgent
from dragoman.home import home
from dragoman.text import clean_text, one_line

MAX_MODELS = 5
"""Of one server that are listed; any other can be named."""

Ask = Callable[[str], str]
Tell = Callable[[str], None]


class OfferRow(msgspec.Struct, frozen=True):
    """A line that a person can choose: a model, or an agent."""

    words: str
    wish: Wish | None = None
    agent: InstalledAgent | None = None


def list_rows(offers: Offers, *, with_agents: bool = True) -> list[OfferRow]:
    """Return what was found on this machine, one line each."""
    rows = [_provider_row(each) for each in offers.providers if (each.variable or each.kept) and each.model]
    for server in offers.servers:
        for model in server.models[:MAX_MODELS]:
            wish = Wish("ollama", model) if server.is_ollama else Wish("openai", model, base_url=server.url)
            rows.append(OfferRow(f"{server.title} on this machine: {model}", wish))
    if with_agents:
        found = [agent for agent in offers.agents if agent.command]
        rows += [OfferRow(f"{agent.title}, another agent", agent=agent) for agent in found]
    return rows


def choose_at_start(options: argparse.Namespace, agent: ChosenAgent, cwd: Path, ask: Ask, tell: Tell) -> ChosenAgent:
    """Ask what to talk with, if nothing says so yet; raises PreferencesUnusable. Ctrl-C and Ctrl-D choose nothing."""
    if not agent.is_own or _is_configured(options, cwd):
        return agent
    rows = list_rows(asyncio.run(find_offers(home())))
    if not rows:
        return agent
    tell("guide would answer, which is no language model. Found on this machine:")
    _show(rows, tell)
    while True:
        try:
            row = _choose(rows, ask("Number, or Enter to stay with guide: "), tell)
            if row is None:
                asyncio.run(connect_model(Wish(GUIDE), home()))
                return agent
            if row.agent is not None:
                PreferenceFile(home()).choose_agent(row.agent.name)
                return ChosenAgent(list(row.agent.command))
            tell("Asking the model one question …")
            _tell_answer(asyncio.run(connect_model(row.wish or Wish(GUIDE), home())), tell)
        except NotConnected as error:
            tell(clean_text(str(error)))
        except (EOFError, KeyboardInterrupt):
            tell("")
            return agent
        else:
            return agent


class ModelQuestion:
    """The question of `:connect`; `call` sends an extension request to the agent, and `methods` has their names."""

    def __init__(self, call: Callable[[str, Mapping[str, Any]], Any], methods: Mapping[str, str], tell: Tell) -> None:
        self._call = call
        self._methods = methods
        self._tell = tell

    def ask(self, ask: Ask, session_id: str, *, with_agents: bool) -> InstalledAgent | None:
        """Have a model connected, or return the agent to go on with; raises DragomanError, EOFError."""
        offers = msgspec.convert(self._call(self._methods["offers"], {}), Offers)
        rows = list_rows(offers, with_agents=with_agents)
        rows += [OfferRow("a provider, with a key"), OfferRow("a server, by its address"), _GUIDE_ROW]
        _show(rows, self._tell)
        row = _choose(rows, ask("Number, or Enter to leave it as it is: "), self._tell)
        if row is None:
            return None
        if row.agent is not None:
            self._call(self._methods["chooseAgent"], {"agent": row.agent.name})
            return row.agent
        wish = row.wish or (_ask_server(ask) if row is rows[-2] else _ask_provider(offers, ask, self._tell))
        if wish is not None:
            self._connect(wish, session_id)
        return None

    def _connect(self, wish: Wish, session_id: str) -> None:
        self._tell("Asking the model one question …")
        told = self._call(self._methods["connect"], {**msgspec.to_builtins(wish), "sessionId": session_id})
        if "problem" in told:
            self._tell(clean_text(f"Not connected: {told['problem']}"))
            return
        _tell_answer(msgspec.convert(told, Connected), self._tell)
        if reason := told.get("countsBefore"):
            self._tell(clean_text(f"New sessions begin with another one: {reason}."))


_GUIDE_ROW = OfferRow("guide, which is no language model and needs nothing", Wish(GUIDE))


def _is_configured(options: argparse.Namespace, cwd: Path) -> bool:
    """Whether a model or an agent was named or chosen, or the project has an agent file, which may name one."""
    if options.model or options.agent or (cwd / "dragoman.yaml").exists() or PreferenceFile(home()).read().agent:
        return True
    default = os.environ.get("DRAGOMAN_MODEL")
    return configured_model(str(home()), model=None, agent_file=None, default_model=default).name is not None


def _provider_row(provider: ProviderOffer) -> OfferRow:
    source = f"the key in {provider.variable}" if provider.variable else "the key that is kept"
    words = f"{provider.title}: {provider.model}, with {source}"
    return OfferRow(f"{words} ({provider.problem})" if provider.problem else words, Wish(provider.id, provider.model))


def _show(rows: list[OfferRow], tell: Tell) -> None:
    for number, row in enumerate(rows, 1):
        tell(f"{number:>3}  {one_line(row.words)}")


def _choose(rows: list[OfferRow], given: str, tell: Tell) -> OfferRow | None:
    """Return the row of a number; None for nothing, and for anything else with a word about it."""
    words = given.strip()
    if words.isdecimal() and 1 <= int(words) <= len(rows):
        return rows[int(words) - 1]
    if words:
        tell(f"There is no number {one_line(words, 20)}; nothing was changed.")
    return None


def _ask_provider(offers: Offers, ask: Ask, tell: Tell) -> Wish | None:
    tell(", ".join(provider.id for provider in offers.providers))
    known = {provider.id: provider for provider in offers.providers}
    provider = known.get(ask("Provider: ").strip().lower())
    if provider is None:
        tell("There is no such provider; nothing was changed.")
        return None
    default = f" [{provider.model}]" if provider.model else ""
    model = ask(f"Model{default}: ").strip() or provider.model
    has_key = " [the one that is there]" if provider.variable or provider.kept else ""
    return Wish(provider.id, model, api_key=_ask_key(f"Key for {provider.title}{has_key} (it is not shown): "))


def _ask_server(ask: Ask) -> Wish | None:
    url = ask("Address, such as http://127.0.0.1:1234/v1: ").strip()
    if not url:
        return None
    model = ask("Model [the first that it lists]: ").strip()
    return Wish("openai", model, api_key=_ask_key("Key, if it wants one (it is not shown): "), base_url=url)


def _ask_key(prompt: str) -> str:
    return getpass.getpass(prompt).strip()


def _tell_answer(connected: Connected, tell: Tell) -> None:
    if connected.answer:
        tell(clean_text(f"{connected.model} answers: {one_line(connected.answer)}"))
    tell(f"{one_line(connected.model)} is used from now on.")
