"""A project full of scripts that record their execution. Commands run there in the real shell."""

import os
import shutil
import subprocess
from pathlib import Path

from dragoman.agent.sessions.approvals import ApprovalFile, Approvals
from dragoman.agent.sessions.permission import Permission
from dragoman.agent.sessions.settings import Mode
from dragoman.protocol import v1

ASK = Mode("ask", "Ask")

SHELL = "echo {path} >> {record}\n"
PYTHON = "open({record!r}, 'a').write({path!r} + '\\n')\n"
SCRIPTS = {
    "run.sh": SHELL,
    "my run.sh": SHELL,
    "run": SHELL,
    "sub/run.sh": SHELL,
    "sub/deep/run.sh": SHELL,
    "sub/run.mk": "all:\n\t@echo {path} >> {record}\n",
    "bin/tool": SHELL,
    "node_modules/.bin/tool": SHELL,
    "my run.mk": "all:\n\t@echo '{path}' >> {record}\n",
    "x.py": PYTHON,
    "mod.py": PYTHON,
    "package/__main__.py": PYTHON,
    "x.mk": "all:\n\t@echo {path} >> {record}\n",
    "x.awk": 'BEGIN {{ print "{path}" >> "{record}" }}\n',
    "x.sed": "1e echo {path} >> {record}\n",
    "x.pl": "system('echo {path} >> {record}');\n",
    "x.js": "require('fs').appendFileSync({record!r}, {path!r} + '\\n')\n",
}


class Project:
    """Its scripts, and the record of those that ran."""

    def __init__(self, top):
        self.cwd = top / "project"
        self._record = top / "ran"
        self.is_missing_a_program = False
        self.restore()

    def restore(self):
        """Restore the original files and delete all others."""
        shutil.rmtree(self.cwd, ignore_errors=True)
        for name in SCRIPTS:
            self.rewrite(name, "")
        (self.cwd / "plain.txt").write_text("one\n")
        (self.cwd / "link").symlink_to("sub")

    def rewrite(self, name, more):
        path = self.cwd / name
        path.parent.mkdir(parents=True, exist_ok=True)
        comment = "// " if name.endswith(".js") else "# "
        path.write_text(SCRIPTS[name].format(path=name, record=str(self._record)) + comment + more + "\n")
        path.chmod(0o755)

    def run(self, command, **variables):
        """Run a command as the agent does, and return the scripts that ran."""
        self._record.unlink(missing_ok=True)
        command = ["/bin/sh", "-c", command]
        environment = {**os.environ, **variables}
        ended = subprocess.run(
            command,
            cwd=self.cwd,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=30,
            check=False,
        )
        self.is_missing_a_program = ended.returncode == 127
        return set(self._record.read_text().splitlines()) if self._record.exists() else set()


class User:
    """Answers always if that is offered, otherwise once. `asked` counts the questions."""

    def __init__(self):
        self.asked = 0
        self.offered = []
        self._permission = Permission(lambda: ASK, Approvals(ApprovalFile(Path(os.devnull), "/")), self._answer)

    async def _answer(self, call, options):
        self.asked += 1
        self.offered = [option.option_id for option in options]
        chosen = "allow_always" if "allow_always" in self.offered else "allow_once"
        return v1.RequestPermissionResponse(outcome=v1.SelectedPermissionOutcome(option_id=chosen))

    async def allows(self, call):
        """Return whether a call may run, and answer its question if it asks."""
        return (await self._permission.decide("call", call, {})).allowed


async def is_asked_again(here, project, command, script):
    """Allow a command, rewrite a script, and return whether the next run asks."""
    user = User()
    assert await user.allows(await here.prepare("run_command", command=command))
    project.rewrite(script, "rewritten")
    call = await here.prepare("run_command", command=command)
    project.rewrite(script, "")
    assert await user.allows(call)
    return user.asked == 2
