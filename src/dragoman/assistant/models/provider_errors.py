"""The one place where the model library's exceptions become ours, with the decision whether to ask again."""

import re
import socket
from typing import Any, cast

import msgspec
from pydantic_ai import exceptions as library

from dragoman.assistant.models.provider_reply import BrokenOff
from dragoman.assistant.models.providers import ModelName, how_to_give_key, leads_elsewhere, shown_url
from dragoman.errors import ContextOverflow, MissingKey, ModelFailure
from dragoman.text import one_line
from dragoman.text.secret import SecretHider

MAX_SAID = 300
"""Characters of a provider's own words that are passed on: some send whole web pages."""

_OVERFLOW = re.compile(
    r"context.{0,20}(length|window|size|limit)|maximum.{0,20}(context|tokens)|too many (input )?tokens"
    r"|(prompt|input) is too long|input.{0,20}tokens? exceed|reduce the length",
    re.IGNORECASE,
)
"""How providers word an overflow that the library has no category for; they agree on no code."""

_BAD_KEY = re.compile(r"API[ _]key[ _](not[ _]valid|invalid|expired)", re.IGNORECASE)
"""Google answers a wrong key with 400, like any other mistake."""

_REFUSED_STATUSES = frozenset({400, 413, 422})
_PASSING_STATUSES = frozenset({408, 409, 425})

_PASSING: tuple[tuple[tuple[type[BaseException], ...], str], ...] = (
    ((library.ModelRateLimitError,), "{0} limits the rate of requests{1}"),
    ((library.ModelOverloadedError,), "{0} is overloaded{1}"),
    ((library.ModelUnavailableError, library.ModelServerError), "{0} has a problem{1}"),
    ((library.ModelTimeoutError, library.ModelRequestTimeout, TimeoutError), "{0} sent nothing for too long"),
    ((library.ModelConnectionError, OSError), "the connection to {0} was lost"),
    ((BrokenOff,), "{0} broke off its answer"),
)
"""Statuses that may be over soon, and the words for each: the provider's title, then its own words."""


class RetryAdvice(msgspec.Struct, frozen=True):
    """It may work if asked again, after as long as the provider asks for."""

    reason: str
    after_s: float | None = None


class Explainer(msgspec.Struct, frozen=True):
    """Explains a provider's failures, without secrets."""

    name: ModelName
    base_url: str | None
    secrets: tuple[str, ...]

    def explain(self, error: BaseException) -> ModelFailure | RetryAdvice:
        """Return the error to raise, or the advice to ask again."""
        said = self._said(error)
        if isinstance(error, library.ModelAPIError) and _is_overflow(error, said):
            return ContextOverflow(f"the conversation is too long for {self.name}{said}; /compact makes it shorter")
        if isinstance(error, library.ModelHTTPError) and _BAD_KEY.search(said):
            return self.missing_key(said)
        # A refused connection needs the person to start the server: asking again would only make them wait.
        if _has_cause(error, ConnectionRefusedError):
            correct = ", or correct base_url" if self.base_url is not None else ""
            return ModelFailure(f"nothing answers at {self._where()}; start the server there{correct}")
        return self._passing(error, said) or self._lasting(error, said)

    def missing_key(self, said: str = "") -> MissingKey:
        """Return the error that says where the key belongs."""
        title, variables = self._title(), self.name.provider.variables
        what = f"{title} did not accept the key{said}" if said else f"{title} needs a key for {self.name}"
        if self.base_url is not None or not variables:
            return MissingKey(f"{what}; set the model's api_key in the agent file (it may be env://NAME)")
        return MissingKey(f"{what}; {how_to_give_key(self.name.kind)}")

    def _passing(self, error: BaseException, said: str) -> RetryAdvice | None:
        after_s = error.retry_after if isinstance(error, library.ModelAPIError) else None
        if _has_cause(error, socket.gaierror):
            return RetryAdvice(f"{self._title()} cannot be reached: the name of its host is not known here", after_s)
        for kinds, words in _PASSING:
            if isinstance(error, kinds):
                return RetryAdvice(words.format(self._title(), said), after_s)
        if isinstance(error, library.ModelHTTPError):
            passing = error.status_code in _PASSING_STATUSES
            return RetryAdvice(f"{self._title()} has a problem{said}", after_s) if passing else None
        return self._garbled(error)

    def _garbled(self, error: BaseException) -> RetryAdvice | None:
        """Explain an error outside of the library's own categories: it did not understand the answer."""
        title = self._title()
        if type(error) is library.ModelAPIError:
            return RetryAdvice(f"{title} sent something unreadable{self._said(error)}", error.retry_after)
        if isinstance(error, library.UnexpectedModelBehavior | ValueError | AttributeError | TypeError):
            return RetryAdvice(f"{title} sent something unreadable")
        if type(error).__module__.partition(".")[0] in ("httpx", "httpx2", "httpcore", "httpcore2", "h11"):
            return RetryAdvice(f"the connection to {title} was lost")
        return None

    def _lasting(self, error: BaseException, said: str) -> ModelFailure:
        title = self._title()
        match error:
            case library.ModelAuthenticationError():
                return self.missing_key(said or " ")
            case library.ModelQuotaExceededError():
                return ModelFailure(f"the account at {title} has no credit or quota left{said}; see to it there")
            case library.ModelNotFoundError():
                guess = getattr(error, "suggested_model_id", None)
                hint = f"did you mean {guess}?" if guess else "check the name of the model, and base_url if one is set"
                where = "" if self.base_url is not None else f" at {self._where()}"
                return ModelFailure(f"{title} has no model {self.name.model!r}{where}{said}; {hint}")
            case library.ModelAPIError():
                return ModelFailure(f"{title} refused the request{said}")
            case _:
                return ModelFailure(f"{title} cannot be asked{said}")

    def _said(self, error: BaseException) -> str:
        body = error.body if isinstance(error, library.ModelAPIError) else None
        words = _words(body) or ("" if isinstance(error, library.ModelHTTPError) else str(error))
        words = one_line(SecretHider(self.secrets).clean(words), MAX_SAID)
        if not words:
            return f" (status {error.status_code})" if isinstance(error, library.ModelHTTPError) else ""
        return f": {words}"

    def _title(self) -> str:
        """Name the endpoint that was asked: with a base_url it is not the provider."""
        return self.name.provider.title if self.base_url is None else f"the server at {shown_url(self.base_url)}"

    def _where(self) -> str:
        own = self.name.provider.base_url
        if self.base_url is None and (own is None or leads_elsewhere(self.name.provider)):
            return "its own address"
        return shown_url(self.base_url or own or "")


def _words(body: object) -> str:
    """Return the message in an error's body, in any of the usual shapes."""
    if isinstance(body, str):
        return body
    if not isinstance(body, dict):
        return ""
    fields = cast("dict[str, Any]", body)
    for key in ("error", "message", "detail"):
        if words := _words(fields.get(key)):
            return words
    return ""


def _is_overflow(error: library.ModelAPIError, said: str) -> bool:
    if isinstance(error, library.ModelContextWindowExceededError):
        return True
    status = getattr(error, "status_code", None)
    return status in _REFUSED_STATUSES and _OVERFLOW.search(said) is not None


def _has_cause(error: BaseException, kind: type[OSError]) -> bool:
    """Whether an error goes back to one of the system's: the library tells all of them as a lost connection."""
    cause: BaseException | None = error
    for _ in range(8):
        if cause is None or isinstance(cause, kind):
            break
        cause = cause.__cause__ or cause.__context__
    return isinstance(cause, kind)
