"""The guard, which authenticates requests, and the headers that restrict browsers.

guard.py         checks each request in a fixed order
origin.py        the checks of Host and Origin, and their normal forms
policy.py        the token, hosts, origins and rates of a bridge
rate_limit.py    token buckets, one per client address
credentials.py   the token, cookies and one-time codes
shares.py        read-only access for other users, for a limited time
stores.py        the interfaces of the stores of shares and codes
answers.py       grants, denials and security headers
"""

from dragoman.bridge.guard.answers import AccessDenial, Grant
from dragoman.bridge.guard.credentials import (
    Token,
    TokenFileError,
    keep_metrics_token,
    keep_token,
    new_token,
)
from dragoman.bridge.guard.guard import Guard
from dragoman.bridge.guard.origin import is_loopback
from dragoman.bridge.guard.policy import InvalidServedAddressError, make_policy, served_names
from dragoman.bridge.guard.shares import Share, TooManySharesError
from dragoman.bridge.guard.stores import AccessUnavailableError, CredentialStores

__all__ = [
    "AccessDenial",
    "AccessUnavailableError",
    "CredentialStores",
    "Grant",
    "Guard",
    "InvalidServedAddressError",
    "Share",
    "Token",
    "TokenFileError",
    "TooManySharesError",
    "is_loopback",
    "keep_metrics_token",
    "keep_token",
    "make_policy",
    "new_token",
    "served_names",
]
