"""Agents by name: from the user's file, installed, on PATH, and from the ACP registry.

`known` combines these sources. `on_path` finds programs. `registry` reads entries of the ACP registry and builds their
commands. `archive` downloads and unpacks programs. `installed` stores the agents that the user agreed to install.
"""
