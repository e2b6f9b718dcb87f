"""How each editor is told of our agent: what to put where.

The formats are those of Zed (`agent_servers` in its settings), JetBrains AI Assistant (`acp.json`), CodeCompanion.nvim
and avante.nvim for Neovim, and agent-shell for Emacs; docs/editors.md says against which state of each they were
checked. JSON strings are good Lua and Emacs Lisp strings as well, as long as letters stay letters.
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
    needs: str
    """The least versions that understand it."""
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
    hint = (
        "Agent Settings > External Agents > Add Agent > Add Custom Agent opens that file. "
        "Then choose dragoman in the new-thread menu of the agent panel."
    )
    return [Snippet("Zed", "Zed 0.215", "json", _zed_settings(), _servers(command, type="custom"), hint)]


def _jetbrains(command: Sequence[str]) -> list[Snippet]:
    hint = (
        "Add Custom Agent, in the menu at the upper right of the AI Chat window, opens that file "
        "(before 2026.1 it is Configure ACP Agents). Then choose dragoman in the chat."
    )
    return [
        Snippet("JetBrains AI Assistant", "an IDE of 2025.3", "json", "~/.jetbrains/acp.json", _servers(command), hint)
    ]


def _neovim(command: Sequence[str]) -> list[Snippet]:
    made = (
        ("CodeCompanion.nvim", "CodeCompanion.nvim 18 and Neovim 0.11", _code_companion, "Then :CodeCompanionChat."),
        ("avante.nvim", "avante.nvim 0.0.28 and Neovim 0.11", _avante, "Then :AvanteChat."),
    )
    return [
        Snippet(product, needs, "lua", _nvim_init(), f"{_comment('--', needs)}{make(command)}", hint)
        for product, needs, make, hint in made
    ]


def _emacs(command: Sequence[str]) -> list[Snippet]:
    product, needs = "agent-shell", "agent-shell 0.74 and Emacs 29.1"
    text = f"{_comment(';;', needs)}{_agent_shell(command)}"
    return [Snippet(product, needs, "elisp", "~/.emacs.d/init.el", text, "Then M-x agent-shell.")]


_EDITORS: dict[str, Callable[[Sequence[str]], list[Snippet]]] = {
    "zed": _zed,
    "jetbrains": _jetbrains,
    "neovim": _neovim,
    "emacs": _emacs,
}
EDITORS = tuple(_EDITORS)


def _comment(mark: str, needs: str) -> str:
    """Say what the lines below are for: those of several plugins go to one output."""
    return f"{mark} For {needs}, or later.\n"


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
    # Entries of the list are functions that make a configuration; a configuration itself is the older form.
    return f"""\
(defun dragoman-agent-config ()
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
      :context-buffer buffer))))
(with-eval-after-load 'agent-shell
  (add-to-list 'agent-shell-agent-configs #'dragoman-agent-config))"""


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _zed_settings() -> str:
    # On macOS it is ~/.config too, and there the variable does not count.
    return f"{_config_home() if sys.platform == 'linux' else '~/.config'}/zed/settings.json"


def _nvim_init() -> str:
    return f"{_config_home()}/nvim/init.lua"


def _config_home() -> str:
    return os.environ.get("XDG_CONFIG_HOME") or "~/.config"
