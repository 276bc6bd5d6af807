"""Gateways whose connections are TLS with certificates of both sides; the certificates are made here."""

from __future__ import annotations

import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.gateway.sites import Sites, name_of

pytestmark = pytest.mark.looks_at_kernel

if shutil.which("openssl") is None:
    pytest.skip("certificates need openssl; scripts/packages.sh test", allow_module_level=True)

FILES = '[tls]\ncertificate = "{0}.crt"\nkey = "{0}.key"\nauthority = "{1}.crt"\n'


def openssl(*arguments: str) -> None:
    """Run openssl."""
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)


def authority(folder: Path, name: str) -> None:
    """Make NAME.crt and NAME.key, an authority."""
    made = ["-keyout", f"{folder}/{name}.key", "-out", f"{folder}/{name}.crt", "-subj", f"/CN={name}", "-days", "2"]
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc", *made)


def certificate(folder: Path, name: str, address: str, signed_by: str = "authority") -> None:
    """Make NAME.crt and NAME.key for an IP address."""
    wanted = ["-keyout", f"{folder}/{name}.key", "-subj", f"/CN={name}", "-addext", f"subjectAltName=IP:{address}"]
    signer = ["-CA", f"{folder}/{signed_by}.crt", "-CAkey", f"{folder}/{signed_by}.key"]
    usage = ["-addext", "basicConstraints=critical,CA:FALSE", "-addext", "extendedKeyUsage=serverAuth,clientAuth"]
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc"]
    openssl("req", "-x509", *curve, *wanted, *usage, *signer, "-days", "2", "-out", f"{folder}/{name}.crt")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with an authority and the certificates of the gateways 1 and 2."""
    authority(tmp_path, "authority")
    for site in (1, 2):
        certificate(tmp_path, str(site), f"127.0.0.{site}")
    return tmp_path


@pytest.fixture
def sites(folder: Path) -> Iterator[Sites]:
    """Two gateways with TLS."""
    both = Sites(folder, tables=lambda site: FILES.format(site, "authority"))
    try:
        yield both
    finally:
        both.close()


def test_a_load_crosses_whole_and_no_frame_is_readable(sites: Sites) -> None:
    listener = sites.listener(2)
    try:
        done = sites.json(1, "load", name_of(2), "--rate", "40Mbit/s", "--duration", "2s")
        assert done["sent"]["result"]["frames"] == done["sent"]["frames"] > 100
        # Without a certificate nothing comes but TLS's alert.
        with socket.create_connection(sites.address(2), 10, source_address=("127.0.0.1", 0)) as plain:
            plain.sendall(bytes(64))
            assert plain.recv(64)[:1] in (b"\x15", b"")
        sites.gateways[2].until_said("site-1: refused: TLS: ")
    finally:
        listener.end()


def test_a_peer_whose_certificate_is_none_is_down(folder: Path) -> None:
    authority(folder, "other")
    certificate(folder, "stranger", "127.0.0.1", "other")
    both = Sites(folder, tables=lambda site: FILES.format("stranger" if site == 1 else 2, "authority"))
    try:
        both.gateways[2].until_said("site-1: closes connections at once")
        both.gateways[1].until_said("site-2: closes connections at once")
        for site in (1, 2):
            assert both.fc(site, "ping", name_of(3 - site), "--within", "1s").returncode in (1, 2)
    finally:
        both.close()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("another authority", "invalid peer certificate"),
        ("another address", "certificate not valid for name"),
        ("plaintext", "no TLS handshake in time"),
    ],
)
def test_a_gateway_that_cannot_show_who_it_is_is_refused(folder: Path, change: str, said: str) -> None:
    authority(folder, "other")
    certificate(folder, "stranger", "127.0.0.1", "other")
    certificate(folder, "elsewhere", "127.0.0.9")
    first = {
        "another authority": FILES.format("stranger", "authority"),
        "another address": FILES.format("elsewhere", "authority"),
        "plaintext": "",
    }[change]
    both = Sites(folder, tables=lambda site: first if site == 1 else FILES.format(2, "authority"))
    try:
        both.gateways[2].until_said(said)
        assert both.fc(1, "ping", name_of(2), "--within", "1s").returncode in (1, 2)
    finally:
        both.close()


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (("1.key", None), r'tls.key = "1.key": the certificate.*s private key, in PEM'),
        (("1.crt", None), r'tls.certificate = "1.crt": a certificate in PEM'),
        (("authority.crt", None), r'tls.authority = "authority.crt": a certificate in PEM'),
        (("1.key", "2.key"), r'tls.key = "1.key": the certificate.*s private key'),
    ],
)
def test_a_wrong_file_is_named(folder: Path, change: tuple[str, str | None], expected: str) -> None:
    name, other = change
    (folder / name).write_text("nothing\n" if other is None else (folder / other).read_text())
    with pytest.raises(AssertionError, match=expected):
        Sites(folder, tables=lambda site: FILES.format(site, "authority")).close()
