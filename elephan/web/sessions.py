"""Sessions of browsers, and the bound on wrong logins; both keep a bounded number of entries in memory."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import secrets
import time
from collections import OrderedDict
from dataclasses import dataclass

from elephan.web.tokens import Token, TokenFile

SESSIONS_MAX = 1000
"""Sessions at once; the least recently used one gives its place."""

IDLE_S = 12 * 3600.0
"""A session that is not used ends after a working day (NIST SP 800-63B, 7.2: at most 12 h for AAL2)."""

LIFE_S = 30 * 86400.0
"""A session ends after that, used or not (NIST SP 800-63B, 7.2: 30 days for AAL1); a page on a wall is always used."""

FAILURES_MAX = 5
"""Wrong logins of one network before it has to wait."""

WAIT_S = 60.0
"""Time in which a network gets its attempts back."""

NETWORKS_MAX = 4096
"""Networks whose wrong logins are remembered; the oldest gives its place."""


@dataclass
class Session:
    """A browser that has logged in."""

    token: Token
    began_s: float
    used_s: float


class Sessions:
    """Sessions by the hash of their cookie: a copy of the memory is no set of cookies."""

    def __init__(self, tokens: TokenFile) -> None:
        self._tokens = tokens
        self._sessions: OrderedDict[str, Session] = OrderedDict()

    def __len__(self) -> int:
        return len(self._sessions)

    def holder(self, text: str) -> Token | None:
        """Return the token that a text is, None if it is none."""
        return self._tokens.holder(text)

    def begin(self, token: Token, now_s: float | None = None) -> str:
        """Begin a session and return its cookie."""
        now_s = time.monotonic() if now_s is None else now_s
        cookie = secrets.token_urlsafe(32)
        self._sessions[_hash(cookie)] = Session(token, now_s, now_s)
        while len(self._sessions) > SESSIONS_MAX:
            self._sessions.popitem(last=False)
        return cookie

    def find(self, cookie: str, now_s: float | None = None) -> Token | None:
        """Return the token of a session, None when it has ended or its token is gone."""
        now_s = time.monotonic() if now_s is None else now_s
        key = _hash(cookie)
        session = self._sessions.get(key)
        if session is None:
            return None
        token = self._tokens.still_there(session.token)
        if token is None or now_s - session.used_s > IDLE_S or now_s - session.began_s > LIFE_S:
            del self._sessions[key]
            return None
        session.used_s = now_s
        self._sessions.move_to_end(key)
        return token

    def end(self, cookie: str) -> None:
        """End a session."""
        self._sessions.pop(_hash(cookie), None)


def _hash(cookie: str) -> str:
    return hashlib.sha256(cookie.encode()).hexdigest()


class Forms:
    """Tokens against forged forms: bound to a browser's cookie by a key of this process (OWASP, CSRF prevention)."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)

    def token(self, cookie: str) -> str:
        """Return the token of every form that a browser with this cookie gets."""
        return hmac.new(self._key, cookie.encode(), hashlib.sha256).hexdigest()

    def fits(self, cookie: str | None, token: str) -> bool:
        """Return True if a form came from a page that this browser was given."""
        return bool(cookie) and hmac.compare_digest(self.token(cookie or "").encode(), token.encode())


class Attempts:
    """Wrong logins by network: each gets `FAILURES_MAX` at once, and one back every `WAIT_S` / `FAILURES_MAX`."""

    def __init__(self) -> None:
        self._debts: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """Wrong logins that still count, and when that was."""

    def __len__(self) -> int:
        return len(self._debts)

    def wait_s(self, client: str, now_s: float | None = None) -> float:
        """Return the time until a client may try again, 0 if it may now."""
        now_s = time.monotonic() if now_s is None else now_s
        over = self._debt(_network(client), now_s) - (FAILURES_MAX - 1)
        return max(0.0, over * WAIT_S / FAILURES_MAX)

    def failed(self, client: str, now_s: float | None = None) -> None:
        """Note a wrong login."""
        now_s = time.monotonic() if now_s is None else now_s
        network = _network(client)
        self._debts[network] = (self._debt(network, now_s) + 1, now_s)
        self._debts.move_to_end(network)
        while len(self._debts) > NETWORKS_MAX:
            self._debts.popitem(last=False)

    def _debt(self, network: str, now_s: float) -> float:
        debt, at_s = self._debts.get(network, (0.0, now_s))
        return max(0.0, debt - (now_s - at_s) * FAILURES_MAX / WAIT_S)


def _network(client: str) -> str:
    """Return whose attempts count together: an IPv4 address, or the /64 that one IPv6 host usually has to itself."""
    try:
        address = ipaddress.ip_address(client.partition("%")[0])
    except ValueError:
        return client
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return str(address.ipv4_mapped)
        return str(ipaddress.ip_network((address, 64), strict=False))
    return str(address)
