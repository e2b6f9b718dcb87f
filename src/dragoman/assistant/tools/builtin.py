"""The tools that every session has."""

from dragoman.agent.workspace.workspace import Workspace
from dragoman.assistant.tools.edit_file import EditFile
from dragoman.assistant.tools.list_directory import ListDirectory
from dragoman.assistant.tools.read_file import ReadFile
from dragoman.assistant.tools.run_command import TIMEOUT_S, CommandSandbox, RunCommand
from dragoman.assistant.tools.search_files import SearchFiles
from dragoman.assistant.tools.tool import Tool
from dragoman.assistant.tools.update_plan import ShowPlan, UpdatePlan
from dragoman.assistant.tools.write_file import WriteFile


def builtin_tools(
    workspace: Workspace,
    show_plan: ShowPlan,
    *,
    ask_outside_reads: bool = False,
    command_timeout_s: float = TIMEOUT_S,
    sandbox: CommandSandbox | None = None,
) -> list[Tool]:
    """Return a session's built-in tools.

    Without `ask_outside_reads`, reading outside of the session's directories is refused.
    """
    return [
        ReadFile(workspace, ask_outside_reads=ask_outside_reads),
        WriteFile(workspace),
        EditFile(workspace),
        ListDirectory(workspace, ask_outside_reads=ask_outside_reads),
        SearchFiles(workspace, ask_outside_reads=ask_outside_reads),
        RunCommand(workspace, timeout_s=command_timeout_s, sandbox=sandbox),
        UpdatePlan(show_plan),
    ]
