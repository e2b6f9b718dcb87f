"""The guard: who may come in, and what browsers are told."""

from dragoman.gateway.guard.grant import NO_STORE, Grant, Refusal, Role
from dragoman.gateway.guard.guard import Guard
from dragoman.gateway.guard.policy import BadAddress, GuardPolicy, is_loopback, make_policy, names_of
from dragoman.gateway.guard.token import Token, TokenUnusable, keep_token, new_token

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
