"""The application: one function per address."""

from __future__ import annotations

import base64
import hashlib
import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import anyio.to_thread
from fastapi import FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import (
    FileResponse,
    HTMLResponse,
    JSONResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)
from starlette.exceptions import HTTPException

from elephan.backup.reading import BackupReader
from elephan.errors import ElephanError
from elephan.monitor.reading import MonitorReader, PathState
from elephan.record import Record
from elephan.web import backups, charts, pages
from elephan.web.asked import AskedTests, Busy, may_ask
from elephan.web.drawing import address
from elephan.web.guard import Guard, Visit
from elephan.web.listen import Listen
from elephan.web.live import Full, Hub
from elephan.web.runs import Runs
from elephan.web.sessions import Sessions
from elephan.web.tokens import TokenFile
from elephan.web.window import DEFAULT, SPANS, Window, WrongWindow, span_for

THREADS = 4
"""Requests that read the store at once: each thread has a connection."""

STATIC_S = 365 * 86400
"""Time for which a browser may keep a file whose URL names its content, s."""

RUN_ID = re.compile(r"[0-9a-f]{4,64}")


class NotThere(Exception):
    """There is no such page; the text says what is not there."""


@dataclass(frozen=True)
class Site:
    """The pages of one store."""

    app: Guard
    """For an ASGI server."""
    hub: Hub
    """Its streams end only with their pages: a server that stops ends them first."""


def application(store: str | None, listen: Listen, tokens: Path | None, is_tls: bool) -> Site:
    """Return the pages of one store; `tokens` None: without login. Raises `InputError`."""
    reader = MonitorReader(store)
    jobs = BackupReader(store)
    hub = Hub(reader, jobs, anyio.to_thread.run_sync)
    sessions = None if tokens is None else Sessions(TokenFile(tokens))

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        anyio.to_thread.current_default_thread_limiter().total_tokens = THREADS
        try:
            yield
        finally:
            hub.end()
            reader.close()
            jobs.close()

    # Without its pages about itself: they load scripts from elsewhere.
    app = FastAPI(lifespan=lifespan, openapi_url=None, docs_url=None, redoc_url=None)
    _errors(app)
    tests = AskedTests(reader.place, hub.note)
    _monitor(app, reader, hub, tests)
    _backups(app, jobs)
    _stored(app, Runs(store))
    _login(app)
    return Site(Guard(app, listen, sessions, is_tls), hub)


def visit_of(request: Request) -> Visit:
    """Return what the guard knows of a request."""
    visit: Visit = request.state.visit
    return visit


def _errors(app: FastAPI) -> None:
    def answer(request: Request, status: int, title: str, text: str) -> Response:
        if "text/html" not in request.headers.get("accept", ""):
            return PlainTextResponse(f"{text}\n", status)
        return HTMLResponse(pages.page("error.html.j2", visit_of(request), "", title=title, text=text), status)

    @app.exception_handler(NotThere)
    def not_there(request: Request, error: NotThere) -> Response:
        return answer(request, 404, "Not here", str(error))

    @app.exception_handler(HTTPException)
    def http(request: Request, error: HTTPException) -> Response:
        title, text = ("Not here", "There is no such page.") if error.status_code == 404 else ("Refused", error.detail)
        return answer(request, error.status_code, title, text)

    @app.exception_handler(WrongWindow)
    def wrong_window(request: Request, error: WrongWindow) -> Response:
        return answer(request, 400, "Cannot read this address", str(error))

    @app.exception_handler(RequestValidationError)
    def wrong_value(request: Request, error: RequestValidationError) -> Response:
        found = error.errors()[0]
        return answer(request, 400, "Cannot read this address", f"{found['loc'][-1]}: {found['msg']}")

    @app.exception_handler(ElephanError)
    def of_store(request: Request, error: ElephanError) -> Response:
        return answer(request, 503, "The store cannot be read", str(error))

    @app.get("/static/{name}")
    def static(name: str) -> Response:
        known = {file.name: file for file in pages.STATIC.iterdir() if file.is_file()}
        if name not in known:
            raise NotThere("There is no such file.")
        return FileResponse(known[name], headers={"cache-control": f"public, max-age={STATIC_S}, immutable"})

    @app.get("/favicon.ico")
    def icon() -> Response:
        return FileResponse(pages.STATIC / "icon.svg", headers={"cache-control": f"public, max-age={STATIC_S}"})


Points = Annotated[int, Query(ge=2, le=charts.POINTS_MAX)]


def _monitor(app: FastAPI, reader: MonitorReader, hub: Hub, tests: AskedTests) -> None:
    def path_named(monitor: str, name: str) -> PathState:
        for path in reader.paths():
            if (path.monitor, path.name) == (monitor, name):
                return path
        raise NotThere(f"Monitor {monitor} has no path {name} in this store.")

    sparks = pages.Sparks(reader)

    def window_of(request: Request) -> Window:
        return Window.of(request.query_params, time.time())

    @app.get("/")
    def overview(request: Request) -> Response:
        return HTMLResponse(pages.overview(visit_of(request), reader, sparks))

    @app.get("/alerts")
    def alerts(request: Request, show: str = "all") -> Response:
        return HTMLResponse(pages.alerts_page(visit_of(request), reader, show == "open"))

    @app.post("/paths/{monitor}/{name:path}/now")
    def now(request: Request, monitor: str, name: str) -> Response:
        visit = visit_of(request)
        if not visit.is_operator or visit.token is None:
            raise HTTPException(403, "Only an operator may ask for a path test.")
        found, test = path_named(monitor, name), visit.form.get("test", "")
        if not may_ask(test):
            raise HTTPException(400, f"There is no path test {test}.")
        try:
            tests.start(found, test, visit.token.name)
        except Busy as busy:
            raise HTTPException(409, str(busy)) from busy
        return RedirectResponse(f"{address(found)}#h-tests", 303)

    @app.get("/paths/{monitor}/{name:path}/data")
    def data(request: Request, monitor: str, name: str, points: Points = charts.POINTS) -> Response:
        found, window = path_named(monitor, name), window_of(request)
        alerts = reader.alerts(found.id, window.start_s, window.end_s, limit=200)
        return JSONResponse(charts.data(reader, found.id, window, points, alerts))

    @app.get("/paths/{monitor}/{name:path}/{key}.csv")
    def as_csv(request: Request, monitor: str, name: str, key: str, points: Points = charts.POINTS_MAX) -> Response:
        found, chart, window = path_named(monitor, name), charts.chart_by_key(key), window_of(request)
        if chart is None:
            raise NotThere(f"There is no chart {key}.")
        file = re.sub(r"[^A-Za-z0-9_.-]", "_", f"{found.name}-{key}.csv")
        return Response(
            charts.as_csv(reader, found.id, chart, window, points),
            media_type="text/csv; charset=utf-8",
            headers={"content-disposition": f'attachment; filename="{file}"'},
        )

    @app.get("/paths/{monitor}/{name:path}")
    def path(request: Request, monitor: str, name: str) -> Response:
        found, now_s = path_named(monitor, name), time.time()
        default = span_for(reader.first_s(found.id, now_s, SPANS[DEFAULT]), now_s)
        window = Window.of(request.query_params, now_s, default)
        return HTMLResponse(pages.path_page(visit_of(request), reader, found, window, tests))

    @app.get("/events")
    async def events(request: Request) -> Response:
        stream = hub.stream(visit_of(request).client)
        try:
            first = await anext(stream)
        except Full:
            return PlainTextResponse("too many pages are open\n", 503, {"retry-after": "30"})

        async def all_of_it() -> AsyncIterator[str]:
            yield first
            async for event in stream:
                # A session that has ended, or whose token was removed, gets no more.
                if _has_lost_access(request):
                    return
                yield event

        return StreamingResponse(all_of_it(), media_type="text/event-stream")


def _has_lost_access(request: Request) -> bool:
    guard: Guard = request.state.guard
    cookie = visit_of(request).cookies.get(guard.session_cookie, "")
    return guard.sessions is not None and guard.sessions.find(cookie) is None


First = Annotated[int, Query(ge=0, le=10**6)]


def _backups(app: FastAPI, reader: BackupReader) -> None:
    @app.get("/backups")
    def jobs(request: Request) -> Response:
        return HTMLResponse(backups.backups_page(visit_of(request), reader))

    @app.get("/backups/{backup}/{name}")
    def job(request: Request, backup: str, name: str, first: First = 0) -> Response:
        found = reader.job(backup, name)
        if found is None:
            raise NotThere(f"Backup {backup} has no job {name} in this store.")
        return HTMLResponse(backups.job_page(visit_of(request), reader, found, first))


def _stored(app: FastAPI, runs: Runs) -> None:
    def record_of(run_id: str) -> Record:
        found = runs.one(run_id) if RUN_ID.fullmatch(run_id) else None
        if not isinstance(found, Record):
            raise NotThere(f"There is no run {run_id} that can be read in this store.")
        return found

    @app.get("/runs")
    def run_list(request: Request, scenario: str = "", first: First = 0) -> Response:
        rows, more = runs.page(scenario or None, first)
        return HTMLResponse(pages.runs_page(visit_of(request), rows, scenario, first, more))

    @app.get("/runs/{run_id}")
    def run(request: Request, run_id: str) -> Response:
        found = runs.one(run_id) if RUN_ID.fullmatch(run_id) else None
        if found is None:
            raise NotThere(f"There is no run {run_id} in this store.")
        return HTMLResponse(pages.run_page(visit_of(request), found))

    @app.get("/runs/{run_id}/report")
    def report(request: Request, run_id: str) -> Response:
        content = runs.report(record_of(run_id))
        visit_of(request).policy = report_policy(content)
        return HTMLResponse(content)

    @app.get("/ledger")
    def ledger(request: Request, first: First = 0) -> Response:
        rows, more = runs.managed(first)
        return HTMLResponse(pages.ledger_page(visit_of(request), rows, first, more))

    @app.get("/ledger/{run_id}")
    def managed(request: Request, run_id: str) -> Response:
        record = record_of(run_id)
        if record.manager is None:
            raise NotThere(f"Run {run_id} had no manager.")
        return HTMLResponse(pages.managed_page(visit_of(request), record, runs.management(record)))


SCRIPT = re.compile(rb"<script>(.*?)</script>", re.DOTALL)


def report_policy(content: bytes) -> str:
    """Return the policy of a report: a page of its own origin, without network, with the scripts that it came with.

    A report stands alone as a file, so its styles are in it; the names that others gave runs and flows are in it too.
    In a sandbox without an origin it has no cookie, no session and no other page to reach.
    """
    hashes = {base64.b64encode(hashlib.sha256(script).digest()).decode() for script in SCRIPT.findall(content)}
    scripts = " ".join(f"'sha256-{one}'" for one in sorted(hashes)) or "'none'"
    return (
        f"sandbox allow-scripts; default-src 'none'; script-src {scripts}; style-src 'unsafe-inline'; img-src data:; "
        "form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
    )


def _login(app: FastAPI) -> None:
    def form(request: Request, back: str, problem: str = "", status: int = 200, wait_s: float = 0) -> Response:
        text = pages.page("login.html.j2", visit_of(request), "", back=back, problem=problem)
        headers = {"retry-after": str(int(wait_s) + 1)} if wait_s else None
        return HTMLResponse(text, status, headers)

    def own(back: str) -> str:
        """Return an address of this site alone: anything else would send a user elsewhere after the login."""
        fits = back.startswith("/") and not back.startswith(("//", "/\\")) and back.isprintable() and "\\" not in back
        return back if fits else "/"

    @app.get("/login")
    def ask(request: Request, next: str = "/") -> Response:
        if request.state.guard.sessions is None or visit_of(request).token is not None:
            return RedirectResponse(own(next), 303)
        return form(request, own(next))

    @app.get("/session")
    def session(request: Request) -> Response:
        """Tell a page if its browser may read: after a link from another site the cookie comes only with this."""
        visit = visit_of(request)
        return JSONResponse({"session": visit.token is not None or not visit.is_behind_login})

    @app.post("/login")
    def enter(request: Request) -> Response:
        guard: Guard = request.state.guard
        visit = visit_of(request)
        back = own(visit.form.get("next", "/"))
        if guard.sessions is None:
            return RedirectResponse(back, 303)
        wait_s = guard.attempts.wait_s(visit.client)
        if wait_s > 0:
            return form(request, back, f"Too many wrong tokens: try again in {int(wait_s) + 1} s.", 429, wait_s)
        token = guard.sessions.holder(visit.form.get("token", "").strip())
        if token is None:
            guard.attempts.failed(visit.client)
            return form(request, back, "This is no token of this server, or it was removed.", 403)
        visit.set_cookies.append(guard.cookie(guard.session_cookie, guard.sessions.begin(token)))
        visit.set_cookies.append(guard.cookie(guard.visit_cookie, ""))
        return RedirectResponse(back, 303)

    @app.post("/logout")
    def leave(request: Request) -> Response:
        guard: Guard = request.state.guard
        if guard.sessions is not None:
            guard.sessions.end(visit_of(request).cookies.get(guard.session_cookie, ""))
        visit_of(request).set_cookies.append(guard.cookie(guard.session_cookie, ""))
        return RedirectResponse("/login" if guard.sessions is not None else "/", 303)
