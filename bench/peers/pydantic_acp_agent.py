"""pydantic-acp with the simplest agent of its library.

pydantic_acp_agent.py [URL MODEL]: uses the library's test model, or a model of the provider at URL.
"""

import sys
from pathlib import Path

from pydantic_acp import run_acp
from pydantic_ai import Agent
from pydantic_ai.models import Model
from pydantic_ai.models.test import TestModel


def find_model() -> Model:
    if len(sys.argv) == 1:
        return TestModel()
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    url, name = sys.argv[1:]
    return OpenAIChatModel(name, provider=OpenAIProvider(base_url=url, api_key="none"))


agent = Agent(find_model())


@agent.tool_plain
def read_file(path: str) -> str:
    return Path(path).read_text()


if __name__ == "__main__":
    run_acp(agent)
