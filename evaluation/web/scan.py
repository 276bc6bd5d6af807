"""`python -m evaluation.web.scan`: wapiti and sslyze on the pages behind TLS and login; writes docs/results/web.md.

Both come from PyPI and are no part of elephan: `pip install wapiti3 sslyze` into an environment of their own, whose
folder of programs is on the PATH.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any

from elephan.errors import InputError
from elephan.web.tokens import add
from evaluation.markdown import fill, table
from evaluation.parts import write_parts
from evaluation.requirements import exit_code
from evaluation.web import site

MODULES = "csp,http_headers,cookieflags,csrf,methods,crlf,xss,permanentxss,redirect,file,sql,ssrf,exec"
"""Of wapiti: those that fit a server without PHP, uploads and files to find."""

CRAWL_S, ATTACK_S = 60, 15
"""Longest time of its crawl, and of each module, s."""


def main() -> int:
    """Scan, write; 1 when something was found."""
    parser = argparse.ArgumentParser(prog="python -m evaluation.web.scan", description=__doc__)
    parser.parse_args()
    for tool, package in (("wapiti", "wapiti3"), ("sslyze", "sslyze")):
        if shutil.which(tool) is None:
            raise InputError(f"needs {tool} on the PATH: pip install {package}")
    site.filled_small()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        certificate, key, tokens = folder / "c.pem", folder / "k.pem", folder / "tokens.json"
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
             "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
             "-keyout", str(key), "-out", str(certificate)],
            check=True, capture_output=True,
        )  # fmt: skip
        token = add(tokens, "scanner", "reader")
        options = ("--tls-cert", str(certificate), "--tls-key", str(key), "--tokens", str(tokens))
        with site.served(*options, store=site.SMALL) as (url, _):
            cookie = session(url, token)
            found, pages, took_s, version = wapiti(url, cookie, folder)
            tls = sslyze(url, folder)
    rows = [[kind, str(len(items))] for kind, items in sorted(found.items())]
    count = sum(len(items) for items in found.values())
    for kind, items in found.items():
        for item in items:
            print(f"{kind}: {item.get('path')}: {item.get('info')}", file=sys.stderr)
    text = "\n\n".join(
        [
            fill(
                f"Wapiti {version} with a session of a reader, {MODULES.count(',') + 1} modules, {pages} addresses in {took_s:.0f} s: "
                f"{count or 'no'} findings. By kind:"
            ),
            table(["kind", "findings"], rows),
            "sslyze on the same server, a self-signed certificate:",
            table(["question", "answer"], tls),
        ]
    )
    write_parts("web.md", "python -m evaluation.web.scan", {"scanners": text})
    return 1 if count else 0


def session(url: str, token: str) -> str:
    """Log in; return the header of the session's cookie."""
    import ssl

    jar = CookieJar()
    context = ssl._create_unverified_context()
    opener = urllib.request.build_opener(
        urllib.request.HTTPSHandler(context=context), urllib.request.HTTPCookieProcessor(jar)
    )
    page = opener.open(f"{url}/login", timeout=30).read().decode()
    csrf = re.search(r'name="csrf" value="(\w+)"', page)
    assert csrf is not None
    fields = urllib.parse.urlencode({"csrf": csrf[1], "token": token, "next": "/"}).encode()
    opener.open(f"{url}/login", fields, timeout=30).read()
    return "; ".join(f"{cookie.name}={cookie.value}" for cookie in jar)


def wapiti(url: str, cookie: str, folder: Path) -> tuple[dict[str, list[Any]], int, float, str]:
    """Return findings by kind, addresses, seconds and the version of wapiti."""
    report = folder / "wapiti.json"
    began_s = time.monotonic()
    # Logging out would end the session that it scans with; the stream of events does not end.
    command = ["wapiti", "-u", f"{url}/", "-H", f"Cookie: {cookie}", "-m", MODULES, "--scope", "folder", "-d", "3",
               "-f", "json", "-o", str(report), "--flush-session", "--max-scan-time", str(CRAWL_S),
               "--max-attack-time", str(ATTACK_S), "-x", f"{url}/logout", "-x", f"{url}/events",
               "--store-session", str(folder), "--store-config", str(folder), "--no-bugreport", "-v", "0"]  # fmt: skip
    subprocess.run(command, timeout=900, check=True, stdout=subprocess.DEVNULL)
    content = json.loads(report.read_text())
    found = {kind: items for part in ("vulnerabilities", "anomalies") for kind, items in content[part].items()}
    infos = content["infos"]
    return (
        found,
        int(infos["crawled_pages_nbr"]),
        time.monotonic() - began_s,
        str(infos["version"]).removeprefix("Wapiti "),
    )


def sslyze(url: str, folder: Path) -> list[list[str]]:
    """Return questions and answers about TLS."""
    report = folder / "sslyze.json"
    place = urllib.parse.urlsplit(url).netloc
    subprocess.run(
        ["sslyze", f"--json_out={report}", "--mozilla_config=disable", place],
        check=False,
        capture_output=True,
        timeout=300,
    )
    result = json.loads(report.read_text())["server_scan_results"][0]["scan_result"]
    rows = []
    for name in ("ssl_2_0", "ssl_3_0", "tls_1_0", "tls_1_1", "tls_1_2", "tls_1_3"):
        suites = result[f"{name}_cipher_suites"]["result"]["accepted_cipher_suites"]
        names = ", ".join(one["cipher_suite"]["name"].removeprefix("TLS_") for one in suites)
        rows.append([name.replace("_", " ", 1).replace("_", ".").upper(), names or "refused"])
    rows.append(["compression", "yes" if result["tls_compression"]["result"]["supports_compression"] else "no"])
    rows.append(["Heartbleed", "yes" if result["heartbleed"]["result"]["is_vulnerable_to_heartbleed"] else "no"])
    injection = result["openssl_ccs_injection"]["result"]["is_vulnerable_to_ccs_injection"]
    rows.append(["CCS injection", "yes" if injection else "no"])
    robot = result["robot"]["result"]["robot_result"]
    rows.append(["ROBOT", str(robot).lower().replace("_", " ")])
    renegotiation = result["session_renegotiation"]["result"]
    is_open = renegotiation["is_vulnerable_to_client_renegotiation_dos"]
    rows.append(["renegotiation by the client", "yes" if is_open else "no"])
    return rows


if __name__ == "__main__":
    sys.exit(exit_code("evaluation.web.scan", main))
