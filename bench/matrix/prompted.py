"""Foreign agents that use a model provider on the loopback interface, so that their prompts can be checked.

Each reads the address of its provider from its environment or settings. They are separate subjects with a separate
page, in addition to the subjects that are not prompted.
"""

import json
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from bench import commands
from bench.matrix.registry import registry_agents
from bench.matrix.subject import Subject
from bench.matrix.subjects import AGENTS
from bench.peers.model_provider import MODEL, RUN_IT
from dragoman.check.driver import ScriptTurn
from dragoman.check.driver.options import HELLO

TURNS = (ScriptTurn(HELLO), ScriptTurn(f"{RUN_IT}, please."))
KEY = "no-key-at-all"
STOP_S = 10


@contextmanager
def provider() -> Generator[str]:
    """Serve a model, and yield its address."""
    command = (sys.executable, str(commands.PEERS / "model_provider.py"))
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.stdin.close()
            process.wait(STOP_S)


def _point_claude(url: str, home: Path) -> dict[str, str]:
    del home
    return {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": KEY}


def _point_codex(url: str, home: Path) -> dict[str, str]:
    lines = (
        f'model = "{MODEL}"',
        'model_provider = "loopback"',
        "[model_providers.loopback]",
        'name = "loopback"',
        f'base_url = "{url}/v1"',
        'wire_api = "responses"',
        'env_key = "OPENAI_API_KEY"',
    )
    _write(home / ".codex" / "config.toml", "\n".join(lines))
    return {"OPENAI_API_KEY": KEY}


def _point_gemini(url: str, home: Path) -> dict[str, str]:
    _write(home / ".gemini" / "settings.json", json.dumps({"security": {"auth": {"selectedType": "gemini-api-key"}}}))
    return {"GOOGLE_GEMINI_BASE_URL": url, "GEMINI_API_KEY": KEY}


def _point_opencode(url: str, home: Path) -> dict[str, str]:
    del home
    options = {"baseURL": f"{url}/v1", "apiKey": KEY}
    provided = {"npm": "@ai-sdk/openai-compatible", "name": "Loopback", "options": options, "models": {MODEL: {}}}
    permission = {"bash": "ask", "edit": "ask"}
    settings = {"model": f"loopback/{MODEL}", "permission": permission, "provider": {"loopback": provided}}
    return {"OPENCODE_CONFIG_CONTENT": json.dumps(settings)}


def _point_qwen(url: str, home: Path) -> dict[str, str]:
    _write(home / ".qwen" / "settings.json", json.dumps({"security": {"auth": {"selectedType": "openai"}}}))
    return {"OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_KEY": KEY, "OPENAI_MODEL": MODEL}


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


_POINTS = {
    "claude-agent-acp": _point_claude,
    "codex-acp": _point_codex,
    "gemini": _point_gemini,
    "opencode": _point_opencode,
    "qwen-code": _point_qwen,
}


def prompted_agents() -> tuple[Subject, ...]:
    """Return a subject for each agent that can use such a provider."""
    known = {each.name: each for each in (*AGENTS, *registry_agents())}
    return tuple(
        msgspec.structs.replace(
            known[name],
            name=f"{name}, prompted",
            about="with a model provider on the loopback interface, which says a sentence or runs a command",
            prompt=True,
            turns=TURNS,
            point=point,
        )
        for name, point in _POINTS.items()
    )
