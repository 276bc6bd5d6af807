"""The guard in front of every page: host, login, forged forms, size of a request, headers of an answer."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from typing import Any, Literal
from urllib.parse import parse_qsl, quote, urlsplit

from elephan.web.listen import Listen
from elephan.web.sessions import Attempts, Forms, Sessions
from elephan.web.tokens import Token

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

BODY_MAX = 16 * 1024
"""Most of a form, bytes: the largest here has some hundred."""

BODY_S = 10.0
"""Time for a form to arrive, s."""

OPEN = ("/login", "/session", "/static/")
"""Front of those addresses that need no login."""

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")
"""Hosts that a browser of this machine asks for; any other is a foreign name that points here (DNS rebinding)."""

HSTS_S = 365 * 86400
"""Time for which a browser keeps to TLS, s."""


@dataclass
class Visit:
    """Facts about a request, for the pages: `request.state.visit`."""

    nonce: str
    """Of the style elements in this answer."""
    csrf: str
    """Goes into each form."""
    token: Token | None = None
    """The token that was logged in with; None where there is no login."""
    is_behind_login: bool = False
    client: str = ""
    form: dict[str, str] = field(default_factory=dict)
    """Fields of the form that came."""
    cookies: dict[str, str] = field(default_factory=dict)
    set_cookies: list[str] = field(default_factory=list)
    policy: str | None = None
    """Content-Security-Policy in place of the usual one."""

    @property
    def is_operator(self) -> bool:
        """Return True for a token of an operator; without login everybody only reads."""
        return self.token is not None and self.token.role == "operator"


class Refused(Exception):
    """A request that gets no further."""

    def __init__(self, status: int, text: str, headers: Headers | None = None) -> None:
        super().__init__(text)
        self.status, self.text, self.headers = status, text, headers or []


class Guard:
    """ASGI middleware: nothing reaches a page, and nothing leaves one, but through here."""

    def __init__(self, app: App, listen: Listen, sessions: Sessions | None, is_tls: bool) -> None:
        """`sessions` None: without login."""
        self._app = app
        self._listen = listen
        self._is_tls = is_tls
        self.sessions = sessions
        self.forms = Forms()
        self.attempts = Attempts()
        # A name with this prefix is only taken with Secure, for this host and all its paths (RFC 6265bis, 4.1.3.2).
        prefix = "__Host-" if is_tls else ""
        self.session_cookie, self.visit_cookie = f"{prefix}elephan", f"{prefix}elephan-visit"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        if scope["type"] == "lifespan":
            return await self._app(scope, receive, send)
        if scope["type"] != "http":
            return await send({"type": "websocket.close"})
        visit = Visit(nonce=secrets.token_urlsafe(16), csrf="", client=(scope.get("client") or ("", 0))[0])

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": self._headers(message.get("headers", []), visit, scope)}
            await send(message)

        try:
            await self._admit(scope, receive, visit)
        except Refused as refused:
            body = f"{refused.text}\n".encode()
            head = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(body)).encode())]
            start = {"type": "http.response.start", "status": refused.status, "headers": [*head, *refused.headers]}
            await send_guarded(start)
            return await send({"type": "http.response.body", "body": body})
        if scope["method"] == "HEAD":
            # Pages are written for GET; the server leaves the content of an answer to HEAD out (RFC 9110, 9.3.2).
            scope = {**scope, "method": "GET"}
        scope.setdefault("state", {})
        scope["state"]["visit"] = visit
        scope["state"]["guard"] = self
        await self._app(scope, receive, send_guarded)

    async def _admit(self, scope: Scope, receive: Receive, visit: Visit) -> None:
        """Raise `Refused` for what must not reach a page; fill in `visit`."""
        head = {name.lower(): value.decode("latin-1") for name, value in scope["headers"]}
        host = head.get(b"host", "")
        if self._listen.is_loopback and _name_of(host) not in (*LOOPBACK_NAMES, self._listen.in_url):
            raise Refused(400, f"Host {host!r}: ask for http://localhost:{self._listen.port}/")
        if scope["method"] not in ("GET", "HEAD", "POST"):
            raise Refused(405, "right are GET, HEAD and POST", [(b"allow", b"GET, HEAD, POST")])
        if scope["method"] == "HEAD" and scope["path"] == "/events":
            raise Refused(405, "right is GET: events have no end", [(b"allow", b"GET")])
        visit.cookies = _cookies(head.get(b"cookie", ""))
        session = visit.cookies.get(self.session_cookie, "")
        visit.is_behind_login = self.sessions is not None
        if self.sessions is not None and session:
            visit.token = self.sessions.find(session)
        # Before the login a cookie of its own binds the form to the browser.
        bound = session if visit.token else visit.cookies.get(self.visit_cookie, "")
        if not bound and self._needs_form(scope["path"]):
            bound = secrets.token_urlsafe(16)
            visit.set_cookies.append(self.cookie(self.visit_cookie, bound))
        visit.csrf = self.forms.token(bound) if bound else ""
        if scope["method"] == "POST":
            await self._check_form(head, host, receive, visit, bound)
        if self.sessions is not None and visit.token is None and not scope["path"].startswith(OPEN):
            raise self._asked_to_log_in(scope, head)

    def _needs_form(self, path: str) -> bool:
        return self.sessions is not None and path == "/login"

    def _asked_to_log_in(self, scope: Scope, head: dict[bytes, str]) -> Refused:
        if scope["method"] == "GET" and "text/html" in head.get(b"accept", ""):
            query = scope.get("query_string", b"").decode("latin-1")
            back = quote(scope["path"] + (f"?{query}" if query else ""), safe="")
            return Refused(303, "log in first", [(b"location", f"/login?next={back}".encode())])
        return Refused(401, "log in first", [(b"www-authenticate", b'Session realm="elephan"')])

    async def _check_form(self, head: dict[bytes, str], host: str, receive: Receive, visit: Visit, bound: str) -> None:
        site, origin = head.get(b"sec-fetch-site"), head.get(b"origin")
        if site not in (None, "same-origin", "none") or (origin is not None and urlsplit(origin).netloc != host):
            raise Refused(403, "this form comes from another site")
        kind = head.get(b"content-type", "").partition(";")[0].strip().lower()
        if kind != "application/x-www-form-urlencoded":
            raise Refused(415, "right is application/x-www-form-urlencoded")
        try:
            async with asyncio.timeout(BODY_S):
                body = await _body(receive)
        except TimeoutError:
            raise Refused(408, f"the form took longer than {BODY_S:g} s", [(b"connection", b"close")]) from None
        try:
            visit.form = dict(parse_qsl(body.decode("utf-8"), keep_blank_values=True, max_num_fields=50))
        except ValueError as error:
            raise Refused(400, "not a form in UTF-8") from error
        if not self.forms.fits(bound, visit.form.get("csrf", "")):
            raise Refused(403, "the form is out of date; go back, load the page again and repeat")

    def cookie(self, name: str, value: str, same_site: Literal["Strict", "Lax"] = "Strict") -> str:
        """Return a Set-Cookie for this browser's session: no script reads it, no other site makes it be sent."""
        ends = "; Max-Age=0" if not value else ""
        return f"{name}={value}; Path=/; HttpOnly; SameSite={same_site}{'; Secure' if self._is_tls else ''}{ends}"

    def _headers(self, given: Headers, visit: Visit, scope: Scope) -> Headers:
        own = {
            b"content-security-policy": (visit.policy or policy(visit.nonce)).encode(),
            b"x-content-type-options": b"nosniff",
            # For browsers that do not know frame-ancestors.
            b"x-frame-options": b"DENY",
            # Not no-referrer: a form would then come with "Origin: null" (Fetch standard, 3.2).
            b"referrer-policy": b"same-origin",
            b"cross-origin-opener-policy": b"same-origin",
            b"cross-origin-resource-policy": b"same-origin",
            b"permissions-policy": b"camera=(), geolocation=(), microphone=(), payment=(), usb=()",
        }
        if self._is_tls:
            own[b"strict-transport-security"] = f"max-age={HSTS_S}".encode()
        names = {name.lower() for name, _ in given}
        if b"cache-control" not in names:
            # A session's pages are in no cache, and not behind the back button of the next user.
            own[b"cache-control"] = b"no-store"
        kept = [(name, value) for name, value in given if name.lower() not in own]
        return [*kept, *own.items(), *((b"set-cookie", text.encode()) for text in visit.set_cookies)]


def policy(nonce: str) -> str:
    """Return the Content-Security-Policy of a page: own files alone, and style elements with this nonce."""
    return (
        f"default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; img-src 'self' data:; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    )


async def _body(receive: Receive) -> bytes:
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Refused(400, "the request ended early")
        body += message.get("body", b"")
        if len(body) > BODY_MAX:
            raise Refused(413, f"at most {BODY_MAX} bytes", [(b"connection", b"close")])
        if not message.get("more_body"):
            return bytes(body)


def _name_of(host: str) -> str:
    """Return a Host header without its port, which `ssh -L` may have changed."""
    name, colon, port = host.rpartition(":")
    return (name if colon and port.isdigit() else host).lower()


def _cookies(text: str) -> dict[str, str]:
    try:
        return {name: morsel.value for name, morsel in SimpleCookie(text).items()}
    except CookieError:
        return {}
