"""Policies, which decide what an agent may do: built-in policies, rules, and the types for custom policies."""

from dragoman.client.permission.action import (
    ActionGroup,
    OpaqueAction,
    ReadAction,
    RunAction,
    ToolAction,
    WriteAction,
)
from dragoman.client.permission.policy import (
    Decision,
    PermissionQuestion,
    Policy,
    PolicyCallback,
    ReadGate,
    ReadGuard,
    allow_all,
    allow_reads,
    ask_user,
    deny_all,
    rules,
)
from dragoman.client.permission.rule import PolicyRule, parse_rule

__all__ = [
    "ActionGroup",
    "Decision",
    "OpaqueAction",
    "PermissionQuestion",
    "Policy",
    "PolicyCallback",
    "PolicyRule",
    "ReadAction",
    "ReadGate",
    "ReadGuard",
    "RunAction",
    "ToolAction",
    "WriteAction",
    "allow_all",
    "allow_reads",
    "ask_user",
    "deny_all",
    "parse_rule",
    "rules",
]
