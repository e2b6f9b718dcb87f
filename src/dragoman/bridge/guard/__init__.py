"""The guard: which requests may come in, and the headers that restrict browsers.

guard.py         checks each request, in a fixed order
policy.py        the hosts, origins and rates of a bridge; token buckets, one for each address
credentials.py   the token, cookies and one-time codes
answers.py       grants and denials; security headers
"""

from dragoman.bridge.guard.answers import AccessDenial, Grant, Role
from dragoman.bridge.guard.credentials import Token, TokenUnusable, keep_token, new_token
from dragoman.bridge.guard.guard import Guard
from dragoman.bridge.guard.policy import BadServedAddress, GuardPolicy, is_loopback, make_policy, served_names

__all__ = [
    "AccessDenial",
    "BadServedAddress",
    "Grant",
    "Guard",
    "GuardPolicy",
    "Role",
    "Token",
    "TokenUnusable",
    "is_loopback",
    "keep_token",
    "make_policy",
    "new_token",
    "served_names",
]
