"""`dragoman editor`: print the configuration that makes an editor start dragoman as an ACP agent."""

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from dragoman.cli.exit_codes import DONE
from dragoman.cli.options import UsageError
from dragoman.cli.output import print_json
from dragoman.installation import find_installation


def main(options: argparse.Namespace) -> int:
    """Print an editor's configuration for our agent or, with `--url`, for a bridge."""
    if options.token_file and not options.url:
        raise UsageError("--token-file needs --url; add --url or leave it out")
    command = attach_command(options.url, options.token_file) if options.url else agent_command()
    shown = snippets(options.editor, command)
    if options.format == "json":
        print_json(msgspec.json.encode({"editor": options.editor, "command": command, "snippets": shown}))
        return DONE
    # stdout has only the snippets, so that they can be piped. stderr says which file they belong to.
    for snippet in shown:
        where = f"{snippet.product}: add this to {snippet.file}; requires {snippet.needs} or later."
        print(f"{where} {snippet.hint}", file=sys.stderr, flush=True)
        print(f"{snippet.text}\n", flush=True)
    return DONE


class Snippet(msgspec.Struct, frozen=True):
    """Configuration lines for one product, and the file they belong to."""

    product: str
    needs: str
    """The oldest versions that support it."""
    language: str
    file: str
    text: str
    hint: str


def agent_command() -> list[str]:
    """Return the absolute command that starts our agent. It stays valid after this process ends."""
    return [*_own_command(), "agent"]


def attach_command(url: str, token_file: str | None) -> list[str]:
    """Return the absolute command that attaches an editor to a bridge."""
    token_options = [] if token_file is None else ["--token-file", str(Path(token_file).absolute())]
    return [*_own_command(), "attach", url, *token_options]


def _own_command() -> list[str]:
    """Return the absolute command of dragoman.

    This is the script next to this Python, or this Python itself. If uvx made the environment, which is only a cache,
    it is the uvx command.
    """
    python = Path(sys.executable).absolute()
    script = python.with_name("dragoman")
    start = find_installation().uvx_command()
    if start is None:
        start = [str(script)] if os.access(script, os.X_OK) else [str(python), "-m", "dragoman"]
    return start


def snippets(editor: str, command: Sequence[str], name: str = "dragoman") -> list[Snippet]:
    """Return the configuration that makes an editor start this command as an agent of this name."""
    return _EDITORS[editor](command, name)


def _zed(command: Sequence[str], name: str) -> list[Snippet]:
    hint = (
        "Agent Settings > External Agents > Add Agent > Add Custom Agent opens that file. "
        f"Then choose {name} in the new-thread menu of the agent panel."
    )
    return [Snippet("Zed", "Zed 0.215", "json", _zed_settings(), _servers(command, name, type="custom"), hint)]


def _jetbrains(command: Sequence[str], name: str) -> list[Snippet]:
    hint = (
        "Add Custom Agent, in the menu at the top right of the AI Chat window, opens that file "
        f"(before 2026.1 it is Configure ACP Agents). Then choose {name} in the chat."
    )
    return [
        Snippet(
            "JetBrains AI Assistant",
            "IDE version 2025.3",
            "json",
            "~/.jetbrains/acp.json",
            _servers(command, name),
            hint,
        )
    ]


def _neovim(command: Sequence[str], name: str) -> list[Snippet]:
    text = (
        ("CodeCompanion.nvim", "CodeCompanion.nvim 18 and Neovim 0.11", _code_companion, "Then :CodeCompanionChat."),
        ("avante.nvim", "avante.nvim 0.0.28 and Neovim 0.11", _avante, "Then :AvanteChat."),
    )
    return [
        Snippet(product, needs, "lua", _nvim_init(), f"{_comment('--', needs)}{make(command, name)}", hint)
        for product, needs, make, hint in text
    ]


def _emacs(command: Sequence[str], name: str) -> list[Snippet]:
    product, needs = "agent-shell", "agent-shell 0.74 and Emacs 29.1"
    text = f"{_comment(';;', needs)}{_agent_shell(command, name)}"
    return [Snippet(product, needs, "elisp", "~/.emacs.d/init.el", text, "Then M-x agent-shell.")]


_EDITORS: dict[str, Callable[[Sequence[str], str], list[Snippet]]] = {
    "zed": _zed,
    "jetbrains": _jetbrains,
    "neovim": _neovim,
    "emacs": _emacs,
}


def _comment(mark: str, needs: str) -> str:
    """Return a comment that names the product. Several plugins share one output."""
    return f"{mark} For {needs}, or later.\n"


def _servers(command: Sequence[str], name: str, **more: str) -> str:
    server = {**more, "command": command[0], "args": list(command[1:])}
    return json.dumps({"agent_servers": {name: server}}, indent=2, ensure_ascii=False)


def _code_companion(command: Sequence[str], name: str) -> str:
    # `auth`: the agent reads its key from its own file, so the plugin has nothing to ask for.
    return f"""\
require("codecompanion").setup({{
  adapters = {{
    acp = {{
      [{_quote(name)}] = function()
        return require("codecompanion.adapters").extend("goose", {{
          name = {_quote(name)},
          formatted_name = {_quote(name)},
          commands = {{ default = {{ {", ".join(map(_quote, command))} }} }},
          handlers = {{ auth = function() return true end }},
        }})
      end,
    }},
  }},
  interactions = {{ chat = {{ adapter = {_quote(name)} }} }},
}})"""


def _avante(command: Sequence[str], name: str) -> str:
    # avante.nvim passes only PATH. Every other variable that the agent file reads must be listed here.
    return f"""\
require("avante").setup({{
  provider = {_quote(name)},
  acp_providers = {{
    [{_quote(name)}] = {{
      command = {_quote(command[0])},
      args = {{ {", ".join(map(_quote, command[1:]))} }},
      env = {{ HOME = os.getenv("HOME") }},
    }},
  }},
}})"""


def _agent_shell(command: Sequence[str], name: str) -> str:
    # The list contains functions that return a configuration. Plain configurations are the older form.
    return f"""\
(defun {name}-agent-config ()
  (agent-shell-make-agent-config
   :identifier '{name}
   :mode-line-name {_quote(name)}
   :buffer-name {_quote(name)}
   :shell-prompt {_quote(f"{name}> ")}
   :shell-prompt-regexp {_quote(f"{name}> ")}
   :client-maker
   (lambda (buffer)
     (acp-make-client
      :command {_quote(command[0])}
      :command-params '({" ".join(map(_quote, command[1:]))})
      :environment-variables (agent-shell-make-environment-variables :inherit-env t)
      :context-buffer buffer))))
(with-eval-after-load 'agent-shell
  (add-to-list 'agent-shell-agent-configs #'{name}-agent-config))"""


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _zed_settings() -> str:
    # On macOS Zed also uses ~/.config, and ignores XDG_CONFIG_HOME.
    return f"{_config_home() if sys.platform == 'linux' else '~/.config'}/zed/settings.json"


def _nvim_init() -> str:
    return f"{_config_home()}/nvim/init.lua"


def _config_home() -> str:
    return os.environ.get("XDG_CONFIG_HOME") or "~/.config"
