"""A scripted agent with options that answers a prompt with their values: `options_agent.py VERSION [OPTION ...]`.

VERSION is the newest ACP version of the agent. An OPTION is `mode`, `model`, `effort` or `web`. `modes` is the mode in
the form of version 1, without config options. The model may be `opus` although the agent does not list it.
"""

import asyncio
import json
import sys

from dragoman.errors import InvalidParamsError
from dragoman.protocol import v1
from dragoman.protocol.methods import SESSION_SET_CONFIG_OPTION, SESSION_SET_MODE
from dragoman.protocol.negotiation import AnsweringTransport
from dragoman.testing import ScriptedAgent, steps
from dragoman.wire import StdioTransport, claim_stdio

VALUES = {"mode": ("ask", "code"), "model": ("haiku", "sonnet"), "effort": ("low", "high"), "web": (False, True)}
NAMES = {"high": "High effort"}


class OptionsAgent(ScriptedAgent):
    def __init__(self, version, offered):
        transport = StdioTransport(*claim_stdio())
        super().__init__(AnsweringTransport(transport) if version == "2" else transport, [])
        self.has_modes = "modes" in offered
        self.set = []
        self.values = {name: VALUES[name][0] for name in offered if name in VALUES}
        self.routes.on_request(SESSION_SET_MODE, self.set_mode)
        self.routes.on_request(SESSION_SET_CONFIG_OPTION, self.set_option)

    def options(self):
        for name, value in self.values.items():
            if name == "web":
                yield v1.SessionConfigBoolean(id=name, name=name, current_value=value)
                continue
            choices = [v1.SessionConfigSelectOption(value=each, name=NAMES.get(each, each)) for each in VALUES[name]]
            category = name if name in ("mode", "model") else None
            yield v1.SessionConfigSelect(id=name, name=name, category=category, current_value=value, options=choices)

    async def _new_session(self, params):
        answer = await super()._new_session(params)
        modes = [v1.SessionMode(id=name, name=name) for name in VALUES["mode"]]
        answer.modes = v1.SessionModeState(current_mode_id="ask", available_modes=modes) if self.has_modes else None
        answer.config_options = list(self.options()) or None
        return answer

    async def set_mode(self, params):
        self.set.append(["modes", params.mode_id])
        return v1.SetSessionModeResponse()

    async def set_option(self, params):
        if params.value not in (*VALUES[params.config_id], "opus"):
            raise InvalidParamsError("value", f"this account has no {params.value}")
        self.set.append([params.config_id, params.value])
        self.values[params.config_id] = params.value
        return v1.SetSessionConfigOptionResponse(config_options=list(self.options()))

    async def _prompt(self, params, request):
        self._turns = [[steps.Say(json.dumps(self.set))]]
        return await super()._prompt(params, request)


if __name__ == "__main__":
    asyncio.run(OptionsAgent(sys.argv[1], sys.argv[2:]).serve())
