"""Asks for a model or an agent at the terminal, for `chat` and `run`.

`choose_at_start` asks once, if nothing is configured, a user can answer, and something was found on this machine. The
answer is saved, even if it is `guide`. `ModelQuestion` implements `:connect` in the chat. It uses the agent's
`dragoman/start` requests, so that the open session switches to the model at once.
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
from dragoman.assistant.start.connecting import Connected, ModelConnectError, Wish, connect_model
from dragoman.assistant.start.offers import Offers, ProviderOffer, find_offers
from dragoman.catalog.on_path import InstalledAgent
from dragoman.cli.agent_choice import ChosenAgent
from dragoman.home import home
from dragoman.text import clean_text, one_line

MAX_MODELS = 5
"""Models listed per server. Others can be typed."""

Ask = Callable[[str], str]
Show = Callable[[str], None]


class OfferRow(msgspec.Struct, frozen=True):
    """A model or an agent that the user can choose."""

    words: str
    wish: Wish | None = None
    agent: InstalledAgent | None = None


def list_rows(offers: Offers, *, with_agents: bool = True) -> list[OfferRow]:
    """Return a row for each model and agent found on this machine."""
    rows = [_provider_row(each) for each in offers.providers if (each.variable or each.kept) and each.model]
    for server in offers.servers:
        for model in server.models[:MAX_MODELS]:
            wish = Wish("ollama", model) if server.is_ollama else Wish("openai", model, base_url=server.url)
            rows.append(OfferRow(f"{server.title} on this machine: {model}", wish))
    if with_agents:
        found = [agent for agent in offers.agents if agent.command]
        rows += [OfferRow(f"{agent.title}, another agent", agent=agent) for agent in found]
    return rows


def choose_at_start(options: argparse.Namespace, agent: ChosenAgent, cwd: Path, ask: Ask, show: Show) -> ChosenAgent:
    """Ask for a model or an agent if none is configured.

    Ctrl-C and Ctrl-D choose nothing. Raises PreferencesFileError.
    """
    if not agent.is_own or _is_configured(options, cwd):
        return agent
    rows = list_rows(asyncio.run(find_offers(home())), with_agents=not options.sandbox)
    if not rows:
        return agent
    # Ask until a model answers its test question or the user keeps guide. Keeping guide is stored, so it is asked once.
    show("No language model is configured, so guide is used. Found on this machine:")
    _show_rows(rows, show)
    while True:
        try:
            row = _choose(rows, ask("Number, or Enter to keep guide: "), show)
            if row is None:
                asyncio.run(connect_model(Wish(GUIDE), home()))
                return agent
            if row.agent is not None:
                PreferenceFile(home()).choose_agent(row.agent.name)
                return ChosenAgent(list(row.agent.command))
            show("Testing the model …")
            _show_answer(asyncio.run(connect_model(row.wish or Wish(GUIDE), home())), show)
        except ModelConnectError as error:
            show(clean_text(str(error)))
        except (EOFError, KeyboardInterrupt):
            show("")
            return agent
        else:
            return agent


class ModelQuestion:
    """The dialog of `:connect`.

    `call` sends an extension request to the agent. `methods` maps our names to the agent's methods.
    """

    def __init__(self, call: Callable[[str, Mapping[str, Any]], Any], methods: Mapping[str, str], show: Show) -> None:
        self._call = call
        self._methods = methods
        self._show = show

    def ask(self, ask: Ask, session_id: str, *, with_agents: bool) -> InstalledAgent | None:
        """Connect a model, or return the agent to switch to. Raises DragomanError or EOFError."""
        offers = msgspec.convert(self._call(self._methods["offers"], {}), Offers)
        rows = list_rows(offers, with_agents=with_agents)
        rows += [OfferRow("a provider with an API key"), OfferRow("a server at a URL"), _GUIDE_ROW]
        _show_rows(rows, self._show)
        row = _choose(rows, ask("Number, or Enter to change nothing: "), self._show)
        if row is None:
            return None
        if row.agent is not None:
            self._call(self._methods["chooseAgent"], {"agent": row.agent.name})
            return row.agent
        wish = row.wish or (_ask_server(ask) if row is rows[-2] else _ask_provider(offers, ask, self._show))
        if wish is not None:
            self._connect(wish, session_id)
        return None

    def _connect(self, wish: Wish, session_id: str) -> None:
        self._show("Testing the model …")
        outcome = self._call(self._methods["connect"], {**msgspec.to_builtins(wish), "sessionId": session_id})
        if "problem" in outcome:
            self._show(clean_text(f"Not connected: {outcome['problem']}"))
            return
        _show_answer(msgspec.convert(outcome, Connected), self._show)
        if reason := outcome.get("countsBefore"):
            self._show(clean_text(f"New sessions still start with another model: {reason}."))


_GUIDE_ROW = OfferRow("guide, which is not a language model and needs no key", Wish(GUIDE))


def _is_configured(options: argparse.Namespace, cwd: Path) -> bool:
    """Return whether a model or agent is configured. A project's agent file counts, because it may name one."""
    if options.model or options.agent or (cwd / "dragoman.yaml").exists() or PreferenceFile(home()).read().agent:
        return True
    default = os.environ.get("DRAGOMAN_MODEL")
    return configured_model(str(home()), model=None, agent_file=None, default_model=default).name is not None


def _provider_row(provider: ProviderOffer) -> OfferRow:
    source = f"the key in {provider.variable}" if provider.variable else "the stored key"
    description = f"{provider.title}: {provider.model}, with {source}"
    return OfferRow(
        f"{description} ({provider.problem})" if provider.problem else description, Wish(provider.id, provider.model)
    )


def _show_rows(rows: list[OfferRow], show: Show) -> None:
    for number, row in enumerate(rows, 1):
        show(f"{number:>3}  {one_line(row.words)}")


def _choose(rows: list[OfferRow], answer: str, show: Show) -> OfferRow | None:
    """Return the row with this number. Return None for empty input, or with a message for other input."""
    words = answer.strip()
    if words.isdecimal() and 1 <= int(words) <= len(rows):
        return rows[int(words) - 1]
    if words:
        show(f"Entry {one_line(words, 20)} does not exist; nothing was changed.")
    return None


def _ask_provider(offers: Offers, ask: Ask, show: Show) -> Wish | None:
    show(", ".join(provider.id for provider in offers.providers))
    known = {provider.id: provider for provider in offers.providers}
    provider = known.get(ask("Provider: ").strip().lower())
    if provider is None:
        show("This provider does not exist; nothing was changed.")
        return None
    default = f" [{provider.model}]" if provider.model else ""
    model = ask(f"Model{default}: ").strip() or provider.model
    has_key = " [the existing one]" if provider.variable or provider.kept else ""
    return Wish(provider.id, model, api_key=_ask_key(f"Key for {provider.title}{has_key} (hidden): "))


def _ask_server(ask: Ask) -> Wish | None:
    url = ask("Address, such as http://127.0.0.1:1234/v1: ").strip()
    if not url:
        return None
    model = ask("Model [the server's first]: ").strip()
    return Wish("openai", model, api_key=_ask_key("Key, if the server requires one (hidden): "), base_url=url)


def _ask_key(prompt: str) -> str:
    return getpass.getpass(prompt).strip()


def _show_answer(connected: Connected, show: Show) -> None:
    if connected.answer:
        show(clean_text(f"{connected.model} answers: {one_line(connected.answer)}"))
    show(f"{one_line(connected.model)} is now used.")
