"""Runs agents of other frameworks as ACP agents: `pydantic_ai`, `langgraph` and `openai_agents`, each with `adapt`.

Each module imports its framework, so import it by name: `from dragoman.agent.adapters import langgraph`.
"""
