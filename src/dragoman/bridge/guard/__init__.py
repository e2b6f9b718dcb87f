"""The guard: who may come in, and what browsers are told."""

from dragoman.bridge.guard.grant import NO_STORE, Grant, Refusal, Role
from dragoman.bridge.guard.guard import Guard
from dragoman.bridge.guard.policy import BadAddress, GuardPolicy, is_loopback, make_policy, names_of
from dragoman.bridge.guard.token import Token, TokenUnusable, keep_token, new_token

__all__ = [
    "NO_STORE",
    "BadAddress",
    "Grant",
    "Guard",
    "GuardPolicy",
    "Refusal",
    "Role",
    "Token",
    "TokenUnusable",
    "is_loopback",
    "keep_token",
    "make_policy",
    "names_of",
    "new_token",
]
