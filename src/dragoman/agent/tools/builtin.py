"""The tools that every session has."""

from dragoman.agent.tools.edit_file import EditFile
from dragoman.agent.tools.list_directory import ListDirectory
from dragoman.agent.tools.read_file import ReadFile
from dragoman.agent.tools.run_command import TIMEOUT_S, RunCommand
from dragoman.agent.tools.search_files import SearchFiles
from dragoman.agent.tools.tool import Tool
from dragoman.agent.tools.update_plan import ShowPlan, UpdatePlan
from dragoman.agent.tools.write_file import WriteFile
from dragoman.agent.workspace.workspace import Workspace


def builtin_tools(
    workspace: Workspace, show_plan: ShowPlan, *, ask_outside_reads: bool = False, command_timeout_s: float = TIMEOUT_S
) -> list[Tool]:
    """Make the built-in tools of a session; without `ask_outside_reads`, reading outside its directories is refused."""
    return [
        ReadFile(workspace, ask_outside_reads=ask_outside_reads),
        WriteFile(workspace),
        EditFile(workspace),
        ListDirectory(workspace, ask_outside_reads=ask_outside_reads),
        SearchFiles(workspace, ask_outside_reads=ask_outside_reads),
        RunCommand(workspace, timeout_s=command_timeout_s),
        UpdatePlan(show_plan),
    ]
