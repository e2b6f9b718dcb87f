"""`dragoman chat` in a pseudo-terminal, with the keys that a user would press."""

import json
import os
import re
import signal
import stat
import sys
import termios
from pathlib import Path

import msgspec
import pytest

from dragoman.cli.chat.mentions import find_mentionable, link_mentions
from dragoman.cli.chat.view import MARK
from dragoman.testing import steps
from tests.cli.terminal import DEADLINE_S, Terminal
from tests.commands import raw, scripted

CTRL_C, CTRL_D, ALT_ENTER, TAB, UP, LEFT = "\x03", "\x04", "\x1b\r", "\t", "\x1b[A", "\x1b[D"
PIXEL = b"\x89PNG\r\n\x1a\n" + bytes(8)


@pytest.fixture
def chat(tmp_path):
    opened = []

    def start(*turns, own=None, columns=80, environment=()):
        agent = ["--", *scripted(*turns)]
        command = [sys.executable, "-m", "dragoman", "chat", "--cwd", str(tmp_path), *(agent if own is None else own)]
        opened.append(Terminal(command, columns=columns, environment=environment))
        opened[-1].expect(MARK)
        return opened[-1]

    yield start
    for terminal in opened:
        terminal.close()


def update(**fields):
    return steps.Update(fields)


def said(text):
    return [{"type": "content", "content": {"type": "text", "text": text}}]


def test_answer_is_rendered_and_ctrl_d_exits(chat):
    terminal = chat([steps.Say("# Head\n\nvery **bold** wo"), steps.Say("rds\n")])
    terminal.press("hi\r")
    terminal.expect("very bold words")
    terminal.expect(MARK)
    assert "\x1b[1mbold\x1b[0m" in terminal.seen
    terminal.press(CTRL_D)
    assert terminal.end() == 0


@pytest.mark.parametrize("columns", [80, 20])
def test_unprompted_work_is_shown_above_the_input_line(chat, tmp_path, columns):
    fifo = tmp_path / "begin"
    os.mkfifo(fifo)
    texts = ["one more th", "ing\n\nand an open row"]
    chunks = [{"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}} for text in texts]
    work = [{"result": {"sessionId": "s"}}, {"wait": str(fifo)}, *({"update": chunk} for chunk in chunks)]
    terminal = chat(own=["--", *raw({"session/new": [work]})], columns=columns)
    terminal.press("is there more that yo want to say")  # wider than the narrow window
    terminal.expect("say")
    terminal.press(LEFT * len(" want to say"))
    with fifo.open("w"):
        pass
    terminal.expect("own:")
    terminal.expect("one more thing")
    terminal.expect("and an open row")
    terminal.expect(MARK)
    terminal.press("u\r")
    terminal.expect(MARK)
    history = Path(os.environ["DRAGOMAN_HOME"]) / "chat-history"
    assert json.loads(history.read_text()) == "is there more that you want to say"


def test_no_color_disables_colours(chat):
    terminal = chat([steps.Say("very **bold** words\n")], environment={"NO_COLOR": "1"}.items())
    terminal.press("hi\r")
    terminal.expect("very bold words")
    terminal.expect(MARK)
    assert not re.search(r"\x1b\[[0-9;]*m", terminal.seen)


def test_agent_output_cannot_control_the_terminal(chat):
    evil = "\x1b]0;evil\x07\x1b[2J\x1b[8m"
    terminal = chat(
        [
            steps.Think(f"think{evil} "),
            steps.Say(f"say{evil} "),
            update(
                sessionUpdate="tool_call", toolCallId="t", title=f"call{evil}", status="completed", content=said(evil)
            ),
            update(sessionUpdate="plan", entries=[{"content": f"step{evil}", "priority": "low", "status": "pending"}]),
            steps.AskPermission(title=f"ask{evil}"),
        ]
    )
    terminal.press("hi\r")
    terminal.expect(r"May the agent do this? ask\x1b]0;evil\x07\x1b[2J\x1b[8m")
    terminal.expect("[n/2]")
    terminal.press("n")
    terminal.expect("outcome: selected no")
    terminal.expect(MARK)  # before it the terminal itself reads the key
    terminal.press(CTRL_D)
    terminal.end()
    assert "\x1b]" not in terminal.seen
    assert "\x1b[2J" not in terminal.seen
    assert "\x1b[8m" not in terminal.seen


@pytest.mark.parametrize(("key", "outcome"), [("y", "yes"), ("n", "no"), ("1", "yes"), ("2", "no"), ("\x1b", "no")])
def test_key_answers_a_question(chat, key, outcome):
    terminal = chat([steps.AskPermission(title="Edit it")])
    terminal.press("hi\r")
    terminal.expect("May the agent do this? Edit it")
    terminal.expect("Reject")
    terminal.press(key)
    terminal.expect(f"outcome: selected {outcome}")


def test_other_keys_and_pastes_do_not_answer_a_question(chat):
    terminal = chat([steps.AskPermission()])
    terminal.press("hi\r")
    terminal.expect("Reject")
    terminal.press("x" + UP + "no, not this n" + "\x1b[B")
    terminal.press_until("y", "outcome: selected yes")


def test_earlier_events_are_shown_before_a_question(chat):
    calls = [
        update(sessionUpdate="tool_call", toolCallId=f"c{number}", title=f"call {number};", status="completed")
        for number in range(50)
    ]
    terminal = chat([steps.Say("first"), *calls, steps.AskPermission(title="Edit it")])
    terminal.press("hi\r")
    terminal.expect("call 49;")
    terminal.expect("May the agent do this?")
    assert "May the agent" not in terminal.plain[: terminal.plain.index("call 49;")]


def test_thoughts_are_folded_and_can_be_shown(chat):
    terminal = chat([steps.Think("a long thought " * 20), steps.Think("END"), steps.Say("done")])
    terminal.press("hi\r")
    terminal.expect("✻ Thought: a long thought")
    terminal.expect("…  :thoughts")
    terminal.expect("done")
    terminal.expect(MARK)
    terminal.press(":thoughts\r")
    terminal.expect("END")


def test_tool_call_shows_live_output_and_its_final_diff(chat):
    diff = [{"type": "diff", "path": "/x/notes.txt", "oldText": "old\n", "newText": "new\n"}]
    terminal = chat(
        [
            update(sessionUpdate="tool_call", toolCallId="t", title="Build", kind="execute", status="in_progress"),
            update(sessionUpdate="tool_call_update", toolCallId="t", content=said("compiling\n")),
            steps.AskPermission(title="wait"),
            update(sessionUpdate="tool_call_update", toolCallId="t", status="completed", content=diff),
        ]
    )
    terminal.press("hi\r")
    terminal.expect("May the agent")
    terminal.expect("Reject")
    terminal.press("y")
    terminal.expect("│ compiling")
    terminal.expect("✓ Build")
    terminal.expect("/x/notes.txt +1 -1")
    assert "\x1b[32m+new" in terminal.seen


def test_ctrl_c_cancels_the_turn_and_the_chat_continues(chat):
    terminal = chat([steps.Say("working"), steps.WaitForCancel()], [steps.Say("again")])
    terminal.press("hi\r")
    terminal.expect("working")
    terminal.press(CTRL_C)
    terminal.expect("cancelling")
    terminal.expect("cancelled")
    terminal.expect(MARK)
    terminal.press("more\r")
    terminal.expect("again")


def test_output_of_a_cancelled_command_stays(chat, tmp_path):
    script = tmp_path / "model.yaml"
    script.write_text("- - tool: {name: run_command, arguments: {command: 'echo so far; sleep 600'}}\n")
    terminal = chat(own=["--model", f"script:{script}"])
    terminal.press("go\r")
    terminal.expect("[y/1]")
    terminal.press("y")
    terminal.expect("│ so far")
    terminal.press(CTRL_C)
    terminal.expect("✗ Run echo so far; sleep 600")
    terminal.expect("│ so far")
    terminal.expect("│ cancelled")


def test_ctrl_c_cancels_an_open_question(chat):
    terminal = chat([steps.AskPermission(), steps.Stop("cancelled")])
    terminal.press("hi\r")
    terminal.expect("Reject")
    terminal.press(CTRL_C)
    terminal.expect("outcome: cancelled")


def test_second_ctrl_c_leaves_an_unresponsive_agent(chat):
    stubborn = (
        "import json, sys\n"
        "for line in sys.stdin:\n"
        "    m = json.loads(line)\n"
        "    r = {'initialize': {'protocolVersion': 1}, 'session/new': {'sessionId': 's'}}.get(m.get('method'))\n"
        "    if r: print(json.dumps({'jsonrpc': '2.0', 'id': m['id'], 'result': r}), flush=True)\n"
    )
    terminal = chat(own=["--", sys.executable, "-c", stubborn])
    terminal.press("hi\r")
    terminal.expect("Ctrl-C cancels")
    terminal.press(CTRL_C)
    terminal.expect("press Ctrl-C again to exit")
    terminal.press(CTRL_C)
    assert terminal.end() == 0


def test_ctrl_c_twice_at_the_prompt_exits(chat):
    terminal = chat([steps.Say("x")])
    terminal.press("half a line")
    terminal.expect("half a line")
    terminal.wait_until_idle()
    terminal.press(CTRL_C)
    terminal.expect("press Ctrl-C again to exit")
    terminal.press("other")
    terminal.expect("other")
    terminal.wait_until_idle()
    terminal.press(CTRL_C)
    assert terminal.end() == 0


def test_several_lines_make_one_prompt(chat, tmp_path):
    terminal = chat([steps.Say("ok")])
    for keys in ("one\\\rtwo\r", f"three{ALT_ENTER}four\r", '"""\rfive\rsix\r"""\r'):
        terminal.press(keys)
        terminal.expect("ok")
        terminal.expect(MARK)
    terminal.press(CTRL_D)
    terminal.end()
    history = Path(os.environ["DRAGOMAN_HOME"]) / "chat-history"
    assert history.read_text() == '"one\\ntwo"\n"three\\nfour"\n"five\\nsix"\n'
    assert stat.S_IMODE(history.stat().st_mode) == 0o600


def test_history_is_restored(chat):
    first = chat([steps.Say("ok")])
    first.press("what I said\r")
    first.expect("ok")
    first.expect(MARK)
    first.press(CTRL_D)
    first.end()
    second = chat([steps.Say("ok")])
    second.press(UP)
    second.expect("what I said")


def test_agent_and_local_commands_are_completed(chat):
    commands = [{"name": "deploy", "description": "Ship it"}]
    terminal = chat([update(sessionUpdate="available_commands_update", availableCommands=commands)])
    terminal.press("hi\r")
    terminal.expect(" s")
    terminal.expect(MARK)
    terminal.press(f"/dep{TAB}")
    terminal.expect("/deploy ")
    terminal.press(f"\x15:thou{TAB}")
    terminal.expect(":thoughts ")


def test_files_of_the_directory_are_completed_and_linked(chat, tmp_path):
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "reader.py").write_text("x")
    (tmp_path / "out.log").write_text("x")
    (tmp_path / ".gitignore").write_text("*.log\n")
    terminal = chat([steps.Say("ok")])
    terminal.press(f"see @read{TAB}")
    terminal.expect("src/reader.py ")
    text = "see @src/reader.py, @src/none.py and @../x; me@src/reader.py"
    link = {"type": "resource_link", "uri": f"file://{tmp_path}/src/reader.py", "name": "reader.py"}
    assert [msgspec.to_builtins(each) for each in link_mentions(tmp_path, text)] == [link]
    assert find_mentionable(tmp_path, "") == ["src/reader.py"]


def test_modes_can_be_shown_and_switched(chat):
    terminal = chat(own=[])
    terminal.press(":mode\r")
    terminal.expect("→ ")
    terminal.expect(MARK)
    terminal.press(":mode plan\r")
    terminal.expect("The mode is now plan.")
    terminal.expect(MARK)
    terminal.press(":mode nonsense\r")
    terminal.expect("nonsense")
    terminal.expect(MARK)


OPTIONS = [
    {
        "type": "select",
        "id": "effort",
        "name": "Effort",
        "category": "_team",
        "currentValue": "low",
        "options": [{"value": "low", "name": "Low"}, {"value": "high", "name": "High effort"}],
    },
    {"type": "boolean", "id": "web", "name": "Web search", "currentValue": False},
]


def changed(index, value):
    options = [dict(option) for option in OPTIONS]
    options[index]["currentValue"] = value
    return [{"result": {"configOptions": options}}]


def test_every_agent_option_can_be_shown_set_and_completed(chat):
    script = {
        "session/new": [[{"result": {"sessionId": "s", "configOptions": OPTIONS}}]],
        "session/set_config_option": [changed(0, "high"), changed(1, True)],
    }
    terminal = chat(own=["--", *raw(script)])
    terminal.press(":set\r")
    terminal.expect("effort  low  Effort")
    terminal.expect("web     off  Web search")
    terminal.expect(MARK)
    terminal.press(":set effort\r")
    terminal.expect("→ low  Low")
    terminal.expect("  high  High effort")
    terminal.expect(MARK)
    terminal.press(f":set ef{TAB}h{TAB}\r")
    terminal.expect("effort is now high.")
    terminal.expect(MARK)
    terminal.press(":set web yes\r")
    terminal.expect("web is now on.")
    terminal.expect(MARK)
    terminal.press(":set effort none\r")
    terminal.expect("the agent has no effort 'none'; expected one of low, high")
    terminal.expect(MARK)
    terminal.press(":set nothing\r")
    terminal.expect("the agent has no option nothing; :set lists them")


def test_old_session_is_resumed_from_the_list_with_its_history(chat, tmp_path):
    (tmp_path / "model.yaml").write_text("- - text: It is `me`.\n")
    terminal = chat(own=["--model", f"script:{tmp_path / 'model.yaml'}"])
    terminal.press("who are `you`?\r")
    terminal.expect("It is me.")
    terminal.expect(MARK)
    terminal.press(":new\r")
    terminal.expect(MARK)
    terminal.press(":resume\r")
    terminal.expect("who are `you`?")
    terminal.expect(":resume NUMBER")
    terminal.expect(MARK)
    number = re.findall(r"(\d+)  who are `you`", terminal.plain)[-1]
    terminal.press(f":resume {number}\r")
    terminal.expect(f"{MARK}who are `you`?")
    terminal.expect("It is me.")
    terminal.expect("Earlier in this conversation")


def test_session_gets_a_title_and_is_archived(chat, tmp_path):
    (tmp_path / "model.yaml").write_text("- - text: It is me.\n")
    terminal = chat(own=["--model", f"script:{tmp_path / 'model.yaml'}"])
    terminal.press("who?\r")
    terminal.expect("It is me.")
    terminal.expect(MARK)
    terminal.press(":title My notes\r")
    terminal.expect("\nMy notes\n")
    terminal.expect(MARK)
    terminal.press(":sessions\r")
    terminal.expect("→  1  My notes")
    terminal.expect(MARK)
    terminal.press(":archive\r")
    terminal.expect("is archived")
    terminal.expect(MARK)
    terminal.press(":sessions\r")
    terminal.expect("There are no sessions in this directory yet.")


def test_image_is_sent_with_the_next_prompt(chat, tmp_path):
    (tmp_path / "dot.png").write_bytes(PIXEL)
    (tmp_path / "text.png").write_text("not a supported image")
    (tmp_path / "model.yaml").write_text("- - text: A dot.\n")
    terminal = chat(own=["--model", f"script:{tmp_path / 'model.yaml'}"], columns=250)  # wide enough that no path wraps
    terminal.press(":image text.png\r")
    terminal.expect("WebP")
    terminal.expect(MARK)
    terminal.press(f":image d{TAB}\r")
    terminal.expect("dot.png will be sent with the next prompt")
    terminal.expect(f"[1 image] {MARK}")
    terminal.press("look\r")
    terminal.expect("A dot.")


def test_image_is_refused_at_once_if_the_agent_accepts_none(chat, tmp_path):
    (tmp_path / "dot.png").write_bytes(PIXEL)
    terminal = chat([steps.Say("x")])
    terminal.press(":image dot.png\r")
    terminal.expect("image")
    terminal.expect(MARK)
    assert "will be sent with the next prompt" not in terminal.plain


def test_unknown_local_command_is_not_sent_to_the_agent(chat):
    terminal = chat([steps.Say("the agent heard")])
    terminal.press(":nonsense\r")
    terminal.expect("there is no command :nonsense; :help lists all commands")
    terminal.press(":help\r")
    terminal.expect(":thoughts")
    assert "the agent heard" not in terminal.plain


def test_failed_turn_is_reported_and_the_chat_continues(chat):
    terminal = chat([steps.Fail(-32603, "no quota")], [steps.Say("fine now")])
    terminal.press("hi\r")
    terminal.expect("no quota")
    terminal.expect(MARK)
    terminal.press("again\r")
    terminal.expect("fine now")


def test_dead_agent_ends_the_chat_with_its_last_output(chat):
    terminal = chat([steps.Exit(7, "out of memory")])
    terminal.press("hi\r")
    terminal.expect("out of memory")
    assert terminal.end() == 1
    assert "Traceback" not in terminal.plain


def test_terminal_is_restored_when_the_chat_is_stopped(chat):
    terminal = chat([steps.Say("working"), steps.WaitForCancel()])
    slave = os.open(terminal.name, os.O_RDWR | os.O_NOCTTY)
    terminal.press("hi\r")
    terminal.expect("working")
    assert not termios.tcgetattr(slave)[3] & termios.ECHO
    os.kill(terminal.process.pid, signal.SIGTERM)
    assert terminal.process.wait(DEADLINE_S) == 128 + signal.SIGTERM
    assert termios.tcgetattr(slave)[3] & termios.ECHO
    os.close(slave)


@pytest.mark.parametrize("columns", [12, 30, 200])
def test_no_row_is_wider_than_the_window(chat, columns):
    terminal = chat([steps.Say("many words " * 30 + "\n- item " + "x" * 90 + "\n"), steps.Say("end.")], columns=columns)
    terminal.press("hi\r")
    terminal.expect("end.")
    terminal.expect(MARK)
    rows = terminal.plain.split(f"{MARK}hi")[-1].split("\n")[1:-1]
    assert all(len(row) < columns for row in rows)
