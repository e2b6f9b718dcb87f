"""`dragoman init`: write an agent file, or show how an editor is told of the agent."""

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from importlib import resources
from pathlib import Path

import msgspec

from dragoman.assistant.profile.choice import FILE_NAME
from dragoman.cli.output import complain
from dragoman.files.private_file import next_step
from dragoman.home import BadHome, home


def main(options: argparse.Namespace) -> int:
    """Do one or the other; 1 when the file is there already or cannot be written."""
    as_json = options.format == "json"
    if options.editor:
        return _show(options.editor, as_json=as_json)
    try:
        directory = home() if options.home else Path.cwd()
    except BadHome as error:
        return _fail(str(error))
    return _write(directory / FILE_NAME, as_json=as_json)


def _write(path: Path, *, as_json: bool) -> int:
    template = resources.files("dragoman.assistant.profile") / "template.yaml"
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Exclusive, so that a file which appears in between is not overwritten; for the owner, as it may hold a key.
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        return _fail(f"{path} is there already; it is left as it is")
    except OSError as error:
        step = next_step(error, "see that this user may write there")
        return _fail(f"cannot write {path}: {error.strerror}; {step}")
    try:
        with open(descriptor, "wb") as file:  # noqa: PTH123 -- it is a descriptor
            file.write(template.read_bytes())
    except OSError as error:
        path.unlink(missing_ok=True)  # or the next try would find it there already
        return _fail(f"cannot write {path}: {error.strerror}")
    if as_json:
        print(json.dumps({"path": str(path)}))
    else:
        print(f"Wrote {path}.\nEvery line of it is a comment yet: take the # away where you want something else.")
    return 0


def _show(editor: str, *, as_json: bool) -> int:
    command = agent_command()
    shown = snippets(editor, command)
    if as_json:
        print(json.dumps({"editor": editor, "command": command, "snippets": msgspec.to_builtins(shown)}))
        return 0
    # The lines alone go to stdout, so that they can be piped; where they go is said beside them.
    for snippet in shown:
        where = f"{snippet.product}: add this to {snippet.file}; it needs {snippet.needs}, or later."
        print(f"{where} {snippet.hint}", file=sys.stderr, flush=True)
        print(f"{snippet.text}\n", flush=True)
    return 0


def _fail(problem: str) -> int:
    complain("init", problem)
    return 1


class Snippet(msgspec.Struct, frozen=True):
    """Lines of configuration, with their product and the file that they go into."""

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
    """Return the configuration that makes an editor start this command as an agent."""
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


def _comment(mark: str, needs: str) -> str:
    """Return a comment with the product of the lines below: the lines of several plugins go to one output."""
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
