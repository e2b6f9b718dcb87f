"""The guard: which requests may come in, and the headers that restrict browsers.

guard.py         checks each request, in a fixed order
origin.py        the check of Host and Origin, and their normal forms
policy.py        the token, hosts, origins and rates of a bridge
rate_limit.py    token buckets, one for each address
credentials.py   the token, cookies and one-time codes
shares.py        what other people may read, and until when
stores.py        where shares and codes are kept: here, or where other bridges find them too
answers.py       grants and denials; security headers
"""

from dragoman.bridge.guard.answers import AccessDenial, Grant, Role
from dragoman.bridge.guard.credentials import (
    LinkCodes,
    Token,
    TokenUnusable,
    keep_metrics_token,
    keep_token,
    new_token,
    realm_of,
)
from dragoman.bridge.guard.guard import Guard
from dragoman.bridge.guard.origin import is_loopback
from dragoman.bridge.guard.policy import BadServedAddress, GuardPolicy, make_policy, served_names
from dragoman.bridge.guard.shares import SHARES_FILE, Share, Shares, TooManyShares
from dragoman.bridge.guard.stores import AccessUnavailable, CredentialStores, LinkCodeStore, ShareStore

__all__ = [
    "SHARES_FILE",
    "AccessDenial",
    "AccessUnavailable",
    "BadServedAddress",
    "CredentialStores",
    "Grant",
    "Guard",
    "GuardPolicy",
    "LinkCodeStore",
    "LinkCodes",
    "Role",
    "Share",
    "ShareStore",
    "Shares",
    "Token",
    "TokenUnusable",
    "TooManyShares",
    "is_loopback",
    "keep_metrics_token",
    "keep_token",
    "make_policy",
    "new_token",
    "realm_of",
    "served_names",
]
