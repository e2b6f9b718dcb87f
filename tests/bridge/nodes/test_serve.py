"""`dragoman serve --store` as users start it: two nodes, our own agent, one session used through both."""

import asyncio
import json
import os
import sys
from contextlib import asynccontextmanager
from urllib.parse import urljoin, urlsplit

import httpx2
import pytest


def environment(tmp_path):
    home = str(tmp_path / "home")
    return {**os.environ, "DRAGOMAN_HOME": home, "DRAGOMAN_STORE_LEASE": "600", "DRAGOMAN_MODEL": "guide"}


async def dragoman(env, *arguments):
    """Run the program until it exits. Return its exit code and its output."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "dragoman", *arguments),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=env,
    )
    output, errors = await asyncio.wait_for(process.communicate(), 60)
    return process.returncode, output.decode(), errors.decode()


@asynccontextmanager
async def served(env, address):
    """Run a node, and yield its address and its token. Stop it at the end."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "dragoman", "serve", "--port", "0", "--format", "json", "--no-open"),
        *("--store", address),
        stdout=asyncio.subprocess.PIPE,
        env=env,
    )
    try:
        yield json.loads(await process.stdout.readline())
    finally:
        process.terminate()
        assert await process.wait() == 0


async def open_link(printed_by, *, at):
    """Open the link that one node printed at another one, twice. Return the answers."""
    path = urlsplit(printed_by["url"])
    async with httpx2.AsyncClient() as http:
        link = urljoin(at["acp"], f"{path.path}?{path.query}")
        return [(await http.get(link)).status_code for _ in range(2)]


@pytest.mark.basic
async def test_session_continues_through_another_node(address, tmp_path):
    env = environment(tmp_path)
    async with served(env, address) as one, served(env, address) as two:
        assert await open_link(one, at=two) == [303, 401], "the link of one node is good once, at any"
        env["DRAGOMAN_TOKEN"] = one["token"]
        code, output, errors = await dragoman(env, "run", "hello", "--url", one["acp"], "--format", "json")
        assert code == 0, errors
        session = json.loads(output)["session_id"]
        code, output, errors = await dragoman(
            env, "run", "Who are you?", "--url", two["acp"], "--session", session, "--format", "json"
        )
        assert (code, json.loads(output)["session_id"]) == (0, session), errors
        code, output, errors = await dragoman(env, "sessions", "show", session, "--url", two["acp"])
        assert code == 0, errors
        assert "hello" in output
        assert "Who are you?" in output


async def test_missing_tables_are_refused_with_the_command_to_create_them(postgres, tmp_path):
    env = environment(tmp_path)
    code, _, errors = await dragoman(env, "serve", "--port", "0", "--store", postgres.new_database())
    assert code == 1
    assert "dragoman store init" in errors
