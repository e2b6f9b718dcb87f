"""Agents of frameworks as ACP agents: `pydantic_ai`, `langgraph` and `openai_agents`, each with a function `adapt`.

Each module imports its framework, so it is imported by name: `from dragoman.agent.adapters import langgraph`.
"""
