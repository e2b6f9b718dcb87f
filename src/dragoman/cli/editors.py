"""How each editor is told of our agent: what to put where.

The formats are those of Zed (`agent_servers` in its settings), JetBrains AI Assistant (`acp.json`), CodeCompanion.nvim
and avante.nvim for Neovim, and agent-shell for Emacs. JSON strings are good Lua and Emacs Lisp strings as well, as
long as letters stay letters.
"""

import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec


class Snippet(msgspec.Struct, frozen=True):
    """Some lines of configuration, what they are for, and where they go."""

    product: str
    language: str
    file: str
    text: str
    hint: str


def agent_command() -> list[str]:
    """Return the absolute command that starts our agent: the script beside this Python, or this Python itself."""
    python = Path(sys.executable).absolute()
    script = python.with_name("dragoman")
    start = [str(script)] if os.access(script, os.X_OK) else [str(python), "-m", "dragoman"]
    return [*start, "agent"]


def snippets(editor: str, command: Sequence[str]) -> list[Snippet]:
    """Return what makes an editor start this command as an agent."""
    return _EDITORS[editor](command)


def _zed(command: Sequence[str]) -> list[Snippet]:
    hint = "Then open the agent panel and start a new dragoman thread."
    return [Snippet("Zed", "json", _zed_settings(), _servers(command, type="custom"), hint)]


def _jetbrains(command: Sequence[str]) -> list[Snippet]:
    hint = "The AI Chat opens the same file with Add Custom Agent; then choose dragoman in the chat."
    return [Snippet("JetBrains AI Assistant", "json", "~/.jetbrains/acp.json", _servers(command), hint)]


def _neovim(command: Sequence[str]) -> list[Snippet]:
    return [
        Snippet("CodeCompanion.nvim", "lua", _nvim_init(), _code_companion(command), "Then :CodeCompanionChat."),
        Snippet("avante.nvim", "lua", _nvim_init(), _avante(command), "Then :AvanteChat."),
    ]


def _emacs(command: Sequence[str]) -> list[Snippet]:
    return [Snippet("agent-shell", "elisp", "~/.emacs.d/init.el", _agent_shell(command), "Then M-x agent-shell.")]


_EDITORS: dict[str, Callable[[Sequence[str]], list[Snippet]]] = {
    "zed": _zed,
    "jetbrains": _jetbrains,
    "neovim": _neovim,
    "emacs": _emacs,
}
EDITORS = tuple(_EDITORS)


def _servers(command: Sequence[str], **more: str) -> str:
    server = {**more, "command": command[0], "args": list(command[1:])}
    return json.dumps({"agent_servers": {"dragoman": server}}, indent=2, ensure_ascii=False)


def _code_companion(command: Sequence[str]) -> str:
    # `auth`: the agent takes its key from its own file, so there is nothing that the plugin could ask for first.
    return f"""\
require("codecompanion").setup({{
  adapters = {{
    acp = {{
      dragoman = function()
        return require("codecompanion.adapters").extend("goose", {{
          name = "dragoman",
          formatted_name = "dragoman",
          commands = {{ default = {{ {", ".join(map(_quote, command))} }} }},
          handlers = {{ auth = function() return true end }},
        }})
      end,
    }},
  }},
  interactions = {{ chat = {{ adapter = "dragoman" }} }},
}})"""


def _avante(command: Sequence[str]) -> str:
    # avante.nvim hands on nothing but PATH; whatever the agent file takes from the environment has to stand here.
    return f"""\
require("avante").setup({{
  provider = "dragoman",
  acp_providers = {{
    dragoman = {{
      command = {_quote(command[0])},
      args = {{ {", ".join(map(_quote, command[1:]))} }},
      env = {{ HOME = os.getenv("HOME") }},
    }},
  }},
}})"""


def _agent_shell(command: Sequence[str]) -> str:
    return f"""\
(with-eval-after-load 'agent-shell
  (add-to-list
   'agent-shell-agent-configs
   (agent-shell-make-agent-config
    :identifier 'dragoman
    :mode-line-name "dragoman"
    :buffer-name "dragoman"
    :shell-prompt "dragoman> "
    :shell-prompt-regexp "dragoman> "
    :client-maker
    (lambda (buffer)
      (acp-make-client
       :command {_quote(command[0])}
       :command-params '({" ".join(map(_quote, command[1:]))})
       :environment-variables (agent-shell-make-environment-variables :inherit-env t)
       :context-buffer buffer)))))"""


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _zed_settings() -> str:
    # On macOS it is ~/.config too, and there the variable does not count.
    return f"{_config_home() if sys.platform == 'linux' else '~/.config'}/zed/settings.json"


def _nvim_init() -> str:
    return f"{_config_home()}/nvim/init.lua"


def _config_home() -> str:
    return os.environ.get("XDG_CONFIG_HOME") or "~/.config"
