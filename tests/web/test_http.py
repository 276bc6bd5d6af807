"""Answers of the server: headers, hosts, forms, logins, wrong addresses, CSV; hostile names are text."""

from __future__ import annotations

import csv
import io
import re
import ssl
import subprocess
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from elephan.web.app import application
from elephan.web.guard import BODY_MAX
from elephan.web.listen import Listen
from elephan.web.sessions import FAILURES_MAX
from elephan.web.tokens import add, remove
from tests.web.conftest import Served, Stored

with warnings.catch_warnings():
    # It would rather have httpx2, which is no more than a name yet.
    warnings.simplefilter("ignore")
    from starlette.testclient import TestClient

HTML = {"accept": "text/html"}
VIENNA = "/paths/synthetic/vienna"
ARCHIVE = "/backups/synthetic/archive"
PAGES = [
    "/", "/alerts", "/alerts?show=open", VIENNA, "/backups", ARCHIVE, "/runs", "/ledger", "/runs?scenario=none",
    "/login",
]  # fmt: skip


def client_of(store: str, tokens: Path | None = None, is_tls: bool = False) -> TestClient:
    site = application(store, Listen.of("127.0.0.1:8080"), tokens, is_tls)
    base = f"{'https' if is_tls else 'http'}://localhost:8080"
    return TestClient(site.app, base_url=base, follow_redirects=False, headers=HTML)


@pytest.fixture
def client(stored_once: Stored) -> Iterator[TestClient]:
    with client_of(stored_once.file) as found:
        yield found


@pytest.fixture
def guarded(stored_once: Stored, tmp_path: Path) -> Iterator[tuple[TestClient, Path, str]]:
    """Behind a login, by TLS: client, file of tokens, and an operator's token."""
    file = tmp_path / "tokens.json"
    text = add(file, "anna", "operator")
    with client_of(stored_once.file, file, is_tls=True) as found:
        yield found, file, text


def csrf_of(page: str) -> str:
    found = re.search(r'name="csrf" value="([0-9a-f]{64})"', page)
    assert found is not None
    return found[1]


def log_in(client: TestClient, text: str, back: str = "/") -> httpx.Response:
    csrf = csrf_of(client.get("/login").text)
    return client.post("/login", data={"csrf": csrf, "token": text, "next": back})


@pytest.mark.parametrize("path", [*PAGES, "/no/such", "/static/page.js", f"{VIENNA}/data"])
def test_every_answer_has_its_headers(client: TestClient, path: str) -> None:
    answer = client.get(path)
    policy = answer.headers["content-security-policy"]
    assert "unsafe" not in policy and "default-src 'none'" in policy and "frame-ancestors 'none'" in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "same-origin"
    assert answer.headers["cross-origin-opener-policy"] == "same-origin"
    assert "server" not in answer.headers and "strict-transport-security" not in answer.headers
    if path.startswith("/static"):
        assert "immutable" in answer.headers["cache-control"]
    else:
        assert answer.headers["cache-control"] == "no-store"


def test_no_page_has_styles_or_scripts_of_its_own(client: TestClient, stored_once: Stored) -> None:
    """The policy forbids them, so that one would not work."""
    for path in [*PAGES, f"/runs/{stored_once.run}", f"/ledger/{stored_once.run}"]:
        page = client.get(path).text
        assert not re.search(r"<[^>]+\s(style|on\w+)=", page), path
        for script in re.findall(r"<script[^>]*>", page):
            assert "src=" in script or "application/json" in script
        for style in re.findall(r"<style[^>]*>", page):
            assert re.search(r"nonce='[\w-]{20,}'", style)


def test_hostile_names_are_text(client: TestClient, stored_once: Stored) -> None:
    overview = client.get("/").text
    assert "<b>geneva</b>" not in overview and "&lt;b&gt;geneva&lt;/b&gt;" in overview
    assert "/paths/synthetic/%3Cb%3Egeneva%3C%2Fb%3E" in overview and "O&#39;Hare &amp; co" in overview
    for path in ("/runs", f"/runs/{stored_once.run}", f"/ledger/{stored_once.run}"):
        assert "<i>managed" not in client.get(path).text
    for path in ("/backups", "/backups/synthetic/images"):
        assert "<b>no route" not in client.get(path).text and "&lt;b&gt;no route" in client.get(path).text
    for path in ("/paths/x/<script>", "/backups/x/<script>", "/runs/<script>", "/alerts?show=<script>",
                 "/runs?scenario=<script>"):  # fmt: skip
        assert "<script>" not in client.get(path).text


def test_another_sites_name_for_this_machine_is_refused(client: TestClient) -> None:
    """DNS rebinding: a page of evil.example may have its name point to 127.0.0.1."""
    for host in ("evil.example:8080", "evil.example", "127.0.0.1.evil.example", "", "localhost.", "[::1"):
        assert client.get("/", headers={"host": host}).status_code == 400, host
    for host in ("localhost", "LOCALHOST:1", "127.0.0.1:9000", "[::1]:8080"):
        assert client.get("/", headers={"host": host}).status_code == 200, host


def test_wrong_addresses_say_what_is_right(client: TestClient, stored_once: Stored) -> None:
    for path in ("/none", "/backups/none/archive", "/backups/synthetic/none", "/paths/synthetic/none",
                 "/paths/none/vienna", f"{VIENNA}/none.csv", "/runs/zz",
                 "/runs/0000", "/runs/../../etc/passwd", "/ledger/none", "/static/none", "/static/..%2fapp.py",
                 f"/runs/{'0' * 16}/report"):  # fmt: skip
        assert client.get(path).status_code == 404, path
    for query in ("span=1000y", "from=x", "from=2026-01-01", "from=2026-01-01&to=2026-01-01", "to=2026-01-01",
                  "from=0001-01-01&to=9999-12-31T23:59:59-23:00", "from=2026-01-02&to=2026-01-01"):  # fmt: skip
        answer = client.get(f"{VIENNA}?{query}")
        assert answer.status_code == 400 and ("right is" in answer.text or "right are" in answer.text), query
    assert client.get(f"{VIENNA}/data?points=1").status_code == 400
    assert client.get("/runs?first=-1").status_code == 400
    assert client.get("/runs?first=1").status_code == 200
    head = client.head("/")
    assert head.status_code == 200 and head.content == b"" and client.head("/events").status_code == 405
    assert client.put("/").status_code == 405 and client.request("TRACE", "/").status_code == 405
    assert client.get("/none", headers={"accept": "application/json"}).text == "There is no such page.\n"


def test_csv_has_what_the_chart_draws(client: TestClient) -> None:
    data = client.get(f"{VIENNA}/data?span=1h&points=50").json()
    answer = client.get(f"{VIENNA}/rtt.csv?span=1h&points=50")
    assert answer.headers["content-disposition"] == 'attachment; filename="vienna-rtt.csv"'
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    line = data["charts"]["rtt"]["lines"][0]
    assert abs(len(rows) - len(line["times"])) <= 1 and {row["quantity"] for row in rows} == {"rtt_s"}
    assert float(rows[5]["mid"]) == pytest.approx(0.008, rel=0.3)
    assert all(float(row["low"]) <= float(row["mid"]) <= float(row["high"]) for row in rows if row["mid"])


def test_a_window_of_a_year_and_of_seconds_can_be_drawn(client: TestClient) -> None:
    year = client.get(f"{VIENNA}/data?span=1y").json()["charts"]
    assert len(year["rtt"]["lines"][0]["times"]) >= 8 and not year["route"]["lines"]
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 3600))
    later = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 3540))
    minute = client.get(f"{VIENNA}/data?from={now}&to={later}").json()["charts"]
    assert 50 <= len(minute["rtt"]["lines"][0]["times"]) <= 61 and minute["route"]["lines"]


def test_a_store_that_is_not_there_yet_is_an_empty_page(tmp_path: Path) -> None:
    with client_of(str(tmp_path / "none.sqlite")) as client:
        for path in ("/", "/alerts", "/runs", "/ledger"):
            assert client.get(path).status_code == 200
        assert "No monitor has stored anything" in client.get("/").text
    assert not list(tmp_path.iterdir())


def test_without_a_session_there_is_only_the_login(guarded: tuple[TestClient, Path, str], stored_once: Stored) -> None:
    client, _, _ = guarded
    for path in (*PAGES[:-1], f"{VIENNA}/data", "/events", f"/runs/{stored_once.run}/report", "/none"):
        answer = client.get(path)
        assert answer.status_code == 303 and answer.headers["location"].startswith("/login?next=%2F"), path
        assert client.get(path, headers={"accept": "application/json"}).status_code == 401
    assert client.get("/static/page.js").status_code == 200
    assert client.get("/session").json() == {"session": False}
    assert client.post("/logout").status_code == 415


def test_a_login_gives_a_cookie_that_no_script_reads_and_no_other_site_sends(
    guarded: tuple[TestClient, Path, str],
) -> None:
    client, file, text = guarded
    answer = log_in(client, text, "/runs")
    assert (answer.status_code, answer.headers["location"]) == (303, "/runs")
    cookie = next(one for one in answer.headers.get_list("set-cookie") if one.startswith("__Host-elephan="))
    assert {"Path=/", "HttpOnly", "SameSite=Strict", "Secure"} <= {part.strip() for part in cookie.split(";")}
    assert answer.headers["strict-transport-security"] == "max-age=31536000"
    page = client.get("/")
    assert page.status_code == 200 and "anna" in page.text
    # A removed token ends its sessions.
    add(file, "bert", "reader")
    assert client.get("/").status_code == 200
    remove(file, "anna")
    assert client.get("/").status_code == 303


def test_a_logout_ends_the_session_on_the_server(guarded: tuple[TestClient, Path, str]) -> None:
    client, _, text = guarded
    log_in(client, text)
    cookies = dict(client.cookies)
    csrf = csrf_of(client.get("/").text)
    assert client.post("/logout", data={"csrf": csrf}).status_code == 303
    client.cookies.clear()
    for name, value in cookies.items():
        client.cookies.set(name, value)
    assert client.get("/").status_code == 303


@pytest.mark.parametrize(
    "back", ["//evil.example", "https://evil.example", "/\\evil.example", "javascript:alert(1)", "/a\r\nx: y", "\\\\x"]
)
def test_a_login_leads_to_no_other_site(guarded: tuple[TestClient, Path, str], back: str) -> None:
    client, _, text = guarded
    assert log_in(client, text, back).headers["location"] == "/"


def test_forms_from_elsewhere_are_refused(guarded: tuple[TestClient, Path, str]) -> None:
    client, _, text = guarded
    csrf = csrf_of(client.get("/login").text)
    good = {"csrf": csrf, "token": text}
    for headers in (
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"origin": "http://localhost:9999"},
    ):
        assert client.post("/login", data=good, headers=headers).status_code == 403, headers
    for wrong in ({"token": text}, {"csrf": "", "token": text}, {"csrf": "0" * 64, "token": text}, {"csrf": "é"}):
        assert client.post("/login", data=wrong).status_code == 403
    kind = {"content-type": "text/plain"}
    assert client.post("/login", content=f"csrf={csrf}&token={text}", headers=kind).status_code == 415
    assert client.post("/login", data={**good, "x": "x" * BODY_MAX}).status_code == 413
    form = {"content-type": "application/x-www-form-urlencoded"}
    assert client.post("/login", content=b"csrf=\xff", headers=form).status_code in (400, 403)
    assert client.post("/login", content="&".join("a=1" for _ in range(200)), headers=form).status_code == 400
    # Another browser's token is of no use.
    client.cookies.clear()
    assert client.post("/login", data=good).status_code == 403


def test_wrong_tokens_have_to_wait(guarded: tuple[TestClient, Path, str]) -> None:
    client, _, text = guarded
    for _ in range(FAILURES_MAX):
        assert log_in(client, "elephan-wrong").status_code == 403
    answer = log_in(client, text)
    assert answer.status_code == 429 and 1 <= int(answer.headers["retry-after"]) <= 60
    assert "elephan-wrong" not in answer.text and text not in answer.text


def test_only_an_operator_may_ask_for_a_path_test(guarded: tuple[TestClient, Path, str], client: TestClient) -> None:
    behind, file, operator = guarded
    log_in(behind, operator)
    csrf = csrf_of(behind.get("/").text)
    assert behind.post(f"{VIENNA}/now", data={"csrf": csrf, "test": "format"}).status_code == 400
    # No monitor runs with this store: that is what the page says.
    assert behind.post(f"{VIENNA}/now", data={"csrf": csrf, "test": "capacity"}).status_code == 303
    deadline = time.monotonic() + 10
    while "monitor synthetic does not run" not in behind.get(VIENNA).text:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert "Measure now" not in behind.get(VIENNA).text
    behind.cookies.clear()
    log_in(behind, add(file, "reader", "reader"))
    csrf = csrf_of(behind.get("/").text)
    assert behind.post(f"{VIENNA}/now", data={"csrf": csrf, "test": "capacity"}).status_code == 403
    assert client.post(f"{VIENNA}/now", data={"csrf": "", "test": "capacity"}).status_code == 403


def test_a_report_stands_in_a_sandbox_with_its_own_scripts_alone(client: TestClient, stored_once: Stored) -> None:
    answer = client.get(f"/runs/{stored_once.run}/report")
    assert answer.status_code == 200 and "The manager at work" in answer.text
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("sandbox allow-scripts; default-src 'none'; script-src 'sha256-")
    assert "allow-same-origin" not in policy and "frame-ancestors 'none'" in policy


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion")
def test_tls_is_1_2_or_later_with_forward_secrecy(stored_once: Stored, serve: Served, tmp_path: Path) -> None:
    certificate, key = tmp_path / "c.pem", tmp_path / "k.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
         "-keyout", str(key), "-out", str(certificate)],
        check=True, capture_output=True,
    )  # fmt: skip
    url = serve(stored_once.file, certificate=certificate, key=key)
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        context = ssl.create_default_context(cafile=str(certificate))
        context.maximum_version = version
        assert httpx.get(f"{url}/", verify=context, headers=HTML).status_code == 200
    weak = ssl.create_default_context(cafile=str(certificate))
    weak.minimum_version, weak.maximum_version = ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1
    weak.set_ciphers("ALL:@SECLEVEL=0")
    static = ssl.create_default_context(cafile=str(certificate))
    static.maximum_version = ssl.TLSVersion.TLSv1_2
    static.set_ciphers("kRSA")
    for context in (weak, static):
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{url}/", verify=context)
