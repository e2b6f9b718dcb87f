"""Errors of agent files, and of the store of the person's decisions.

ProfileError        the file is wrong, at these lines
MissingVariable     it names an environment variable that is not set
TrustFailed         a decision about a project's file cannot be kept
EditRefused         the file cannot be changed as it was asked to be
└─ ImpossibleEdit   because of the request, not because of the file
"""

from collections.abc import Sequence

from dragoman.assistant.yaml import YamlProblem
from dragoman.errors import DragomanError


class ProfileError(DragomanError):
    """An agent file is wrong: all its problems, each with its line; line 0 is the file itself."""

    def __init__(self, file: str, problems: Sequence[YamlProblem]) -> None:
        self.file = file
        self.problems = tuple(problems)
        super().__init__("\n".join(_place(file, problem) for problem in problems))


class MissingVariable(DragomanError):
    """A secret is to come from an environment variable that is not set."""

    def __init__(self, variable: str) -> None:
        self.variable = variable
        super().__init__(
            f"the environment variable {variable} is not set, and the agent file takes a secret from it; "
            "set it where the agent is started (an editor may have its own place for that), then start it again"
        )


class TrustFailed(DragomanError):
    """A decision of the person about a project's agent file cannot be kept."""

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"cannot keep the decision in {path}: {reason}; it holds for this session only")


class EditRefused(DragomanError):
    """An agent file cannot be changed as it was asked to be, and is as it was."""

    def __init__(self, file: str, reason: str) -> None:
        self.file = file
        self.reason = reason
        super().__init__(f"{file} is left as it is: {reason}")


class ImpossibleEdit(EditRefused):
    """The request is wrong: the name is taken, or is not there, or the entry is wrong."""


def _place(file: str, problem: YamlProblem) -> str:
    return f"{file}:{problem.line}: {problem.text}" if problem.line else f"{file}: {problem.text}"
