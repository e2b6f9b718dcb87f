"""The files of deploy/ for several nodes: no engine runs here, so their syntax and their commands are tried without."""

import secrets
import shlex
import subprocess
from pathlib import Path

import yaml

from dragoman.cli.commands import STORE_ACTIONS
from tests.bridge.guard.serving import serving

DEPLOY = Path(__file__).parents[2] / "deploy"


def test_all_that_the_compose_file_names_is_in_it():
    compose = yaml.safe_load((DEPLOY / "compose-postgresql.yaml").read_text())
    services = compose["services"]
    assert services.keys() == {"db", "tables", "node", "proxy"}
    for service in services.values():
        assert set(service.get("depends_on", ())) <= services.keys()
        assert set(service.get("secrets", ())) <= compose["secrets"].keys()
        assert {config["source"] for config in service.get("configs", ())} <= compose["configs"].keys()
        assert {volume.partition(":")[0] for volume in service.get("volumes", ())} <= compose["volumes"].keys()
        assert ("image" in service) != ("build" in service)


def read_commands():
    """Give the commands of dragoman in both files."""
    compose = yaml.safe_load((DEPLOY / "compose-postgresql.yaml").read_text())
    cluster = list(yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text()))
    yield from (service["command"] for service in compose["services"].values() if "command" in service)
    for part in cluster:
        assert {"apiVersion", "kind", "metadata", "spec"} <= part.keys()
        if part["kind"] in ("Job", "Deployment"):
            yield from (container["command"] for container in part["spec"]["template"]["spec"]["containers"])


def test_the_commands_in_the_containers_are_commands_of_dragoman(home, tmp_path):
    plain, shells = [], []
    for command in read_commands():
        (shells if command[0] == "sh" else plain).append(command)
    assert plain == [["dragoman", "store", "init"]] * 2
    assert "init" in STORE_ACTIONS
    (tmp_path / "token").write_text(secrets.token_urlsafe(32))
    for _, _, script in shells:
        prepare, _, serve = script.partition("&&")
        source, target = shlex.split(prepare)[-2:]
        words = prepare.replace(source, str(tmp_path / "token")).replace(target, str(home / "bridge" / "token"))
        subprocess.run(["sh", "-c", words], check=True)
        options = shlex.split(serve)[3:]
        assert shlex.split(serve)[:3] == ["exec", "dragoman", "serve"]
        with serving(home, *options) as served:
            assert served.token == (tmp_path / "token").read_text()
