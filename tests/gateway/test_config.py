"""The file of a gateway: every fault is one line with file, key, value and what would be right."""

from __future__ import annotations

from pathlib import Path

import pytest

from elephan.cli.main import call
from elephan.errors import InputError
from elephan.gateway import load
from elephan.gateway.config import address_text

GOOD = """\
[fabric]
name = "10:00:00:1b:32:0a:0b:0c"

[ethernet]
interface = "eth1"
"""


def written(folder: Path, text: str) -> Path:
    file = folder / "gateway.toml"
    file.write_text(text)
    return file


def test_a_short_file_has_the_usual_values(tmp_path: Path) -> None:
    config = load(written(tmp_path, GOOD + "vlan = 100\n"))
    assert config.fabric.name == 0x1000001B320A0B0C
    assert (config.fabric.domain, config.fabric.fc_map, config.fabric.keep_alive) == (1, 0x0EFC00, 8000)
    assert config.vlan_tag() == 3 << 13 | 100
    assert config.statistics.prometheus is None
    assert config.ethernet is not None and config.ethernet.pause
    quiet = load(written(tmp_path, GOOD + "pause = false\n")).ethernet
    assert quiet is not None and not quiet.pause


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('"10:00:00:1b:32:0a:0b:0c"', '"10:00"', ':2: fabric.name = "10:00": a world wide name of 16 hex'),
        ("[ethernet]", "domain = 240\n[ethernet]", ":4: fabric.domain = 240: a whole number from 1 to 239"),
        ("[ethernet]", 'keep_alive = "100ms"\n[ethernet]', ':4: fabric.keep_alive = "100ms": a time of whole milli'),
        ("[ethernet]", "keep_alive = 8\n[ethernet]", ":4: fabric.keep_alive = 8: "),
        ("[ethernet]", 'fc_map = "0f:fc:00"\n[ethernet]', ':4: fabric.fc_map = "0f:fc:00": a value from "0e:fc:00"'),
        ("interface =", "interfaces =", ':5: ethernet.interfaces = "eth1": unknown key; did you mean "interface"?'),
        ('"eth1"', '"a-name-of-16-chars"', ':5: ethernet.interface = "a-name-of-16-chars": the name of an Ethernet'),
        ('"eth1"', '"eth1"\nvlan = 4095', ":6: ethernet.vlan = 4095: a whole number from 1 to 4094"),
        ('[ethernet]\ninterface = "eth1"', "", ": one [ethernet] with an interface, or [[socket]] tables"),
        (
            '"eth1"',
            '"eth1"\n[statistics]\nprometheus = "0.0.0.0:9325"',
            ':7: statistics.prometheus = "0.0.0.0:9325": an address of this machine alone',
        ),
        (
            '[ethernet]\ninterface = "eth1"',
            '[[socket]]\nlocal = "a"\nremote = "a"',
            ':6: socket.0.remote = "a": a path that no other key has',
        ),
        (
            '[ethernet]\ninterface = "eth1"',
            f'[[socket]]\nlocal = "{"a" * 120}"\nremote = "b"',
            f':5: socket.0.local = "{"a" * 120}": a path of at most 107 bytes',
        ),
    ],
)
def test_a_fault_is_named_with_its_place(tmp_path: Path, old: str, new: str, expected: str) -> None:
    assert old in GOOD
    file = written(tmp_path, GOOD.replace(old, new, 1))
    with pytest.raises(InputError) as caught:
        load(file)
    assert str(caught.value).startswith(f"{file}{expected}"), str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_command_ends_with_2_and_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(tmp_path, GOOD.replace("eth1", ""))
    assert call(["gateway", "run", str(file)]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert call(["gateway", "check", str(tmp_path / "none.toml")]) == 2
    assert "none.toml: cannot be read: No such file" in capsys.readouterr().err
    assert call(["gateway", "check", str(written(tmp_path, GOOD))]) == 0


def test_an_interface_that_is_not_there_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["gateway", "run", str(written(tmp_path, GOOD.replace("eth1", "no-such-eth")))]) == 1
    assert "the gateway cannot start: no-such-eth: No such device" in capsys.readouterr().err


IP = """\
[ip]
listen = "127.0.0.1:3420"

[[peer]]
name = "room-b"
address = "127.0.0.2:3420"

[[peer.port]]
name = "20:00:00:1b:32:0a:0b:0d"
id = "020100"
role = "target"
"""


TLS = '[tls]\ncertificate = "a.crt"\nkey = "a.key"\nauthority = "gateways.crt"\n'


def test_peers_and_their_ports_are_read(tmp_path: Path) -> None:
    config = load(written(tmp_path, GOOD + IP))
    assert config.ip is not None and config.ip.mode == "transparent"
    assert address_text(config.ip.listen) == "127.0.0.1:3420"
    (port,) = config.peer[0].port
    assert (port.name, port.id, port.features()) == (0x2000001B320A0B0D, 0x020100, 1)
    with_ipv6 = IP.replace("127.0.0.1:3420", "[::1]:3420").replace("127.0.0.2:3420", "[::1]:3421")
    assert load(written(tmp_path, GOOD + with_ipv6)).ip is not None


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('"127.0.0.1:3420"', '"10.0.0.1:3420"', ':7: ip.listen = "10.0.0.1:3420": [tls] with certificates, or'),
        ('"127.0.0.2:3420"', '"10.0.0.2:3420"', ':11: peer.0.address = "10.0.0.2:3420": [tls] with certificates, or'),
        ("[[peer]]", f"plaintext = true\n{TLS}[[peer]]", ":9: ip.plaintext = true: one of [tls] and plaintext"),
        ("[[peer]]", '[tls]\ncertificate = "a.crt"\n[[peer]]', ":9: tls.key: missing"),
        ('"127.0.0.2:3420"', '"room-b:3420"', ':11: peer.0.address = "room-b:3420": an IP address with a port'),
        ('id = "020100"\n', "", ":13: peer.0.port.0.id: missing; mode transparent needs the address"),
        ('"020100"', '"010100"', ':15: peer.0.port.0.id = "010100": an address of another domain than this'),
        ('"target"', '"disk"', ':16: peer.0.port.0.role = "disk": one of "initiator", "target", "both"'),
        (IP.partition("[[peer]]")[0], "", ": [ip] with listen is needed beside [[peer]]"),
        (
            "[[peer.port]]",
            '[[peer.port]]\nname = "20:00:00:1b:32:0a:0b:0d"\nid = "020101"\n[[peer.port]]',
            ':17: peer.0.port.1.name = "20:00:00:1b:32:0a:0b:0d": a port that is behind one peer, once',
        ),
    ],
)
def test_a_fault_of_peers_is_named_with_its_place(tmp_path: Path, old: str, new: str, expected: str) -> None:
    assert old in IP
    file = written(tmp_path, GOOD + IP.replace(old, new, 1))
    with pytest.raises(InputError) as caught:
        load(file)
    assert str(caught.value).startswith(f"{file}{expected}"), str(caught.value)


def test_addresses_beyond_this_machine_need_the_users_word(tmp_path: Path) -> None:
    text = GOOD + IP.replace("127.0.0.", "10.0.0.").replace("[[peer]]", "plaintext = true\n[[peer]]")
    assert load(written(tmp_path, text)).peer[0].address[1] == 3420
    with_tls = GOOD + TLS + IP.replace("127.0.0.", "10.0.0.")
    with pytest.raises(InputError, match=r'tls.certificate = "a.crt": a file that can be read: No such file'):
        load(written(tmp_path, with_tls))


ISNS = '[isns]\nserver = "127.0.0.9"\n'


def test_a_name_server_is_read(tmp_path: Path) -> None:
    isns = load(written(tmp_path, GOOD + IP + ISNS)).isns
    assert isns is not None and address_text(isns.server) == "127.0.0.9:3205"
    assert (isns.entity, isns.source, isns.scn_port) == (None, "control_node", None)
    assert (isns.refresh, isns.registration_period) == (15 * 10**9, 300 * 10**9)
    for server, expected in (("::1", "[::1]:3205"), ("[::1]", "[::1]:3205"), ("[::1]:99", "[::1]:99")):
        with_ipv6 = IP.replace("127.0.0.1:3420", "[::1]:3420").replace("127.0.0.2:3420", "[::1]:3421")
        isns = load(written(tmp_path, GOOD + with_ipv6 + ISNS.replace("127.0.0.9", server))).isns
        assert isns is not None and address_text(isns.server) == expected
    # Without [[peer]]: all of them come from the server.
    assert not load(written(tmp_path, GOOD + IP.partition("[[peer]]")[0] + ISNS)).peer


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('"127.0.0.9"', '"names.example"', ':18: isns.server = "names.example": an IP address, or one with a port'),
        ('"127.0.0.9"', '"127.0.0.9:0"', ':18: isns.server = "127.0.0.9:0": an IP address, or one with a port'),
        ('"127.0.0.9"', '"127.0.0.9:70000"', ':18: isns.server = "127.0.0.9:70000": an IP address, or one with'),
        ('"127.0.0.9"', '"0.0.0.0"', ':18: isns.server = "0.0.0.0": an IP address, or one with a port'),
        ('"127.0.0.9"', '"10.0.0.9"', ':18: isns.server = "10.0.0.9": [tls] with certificates, or plaintext'),
        ('"127.0.0.9"', "9", ":18: isns.server = 9: an IP address, or one with a port"),
        ('server = "127.0.0.9"', "", ":17: isns.server: missing"),
        ('"127.0.0.9"', '"127.0.0.9"\nentity = ""', ':19: isns.entity = "": a name of 1 to 255 bytes'),
        ('"127.0.0.9"', '"127.0.0.9"\nsource = "port"', ':19: isns.source = "port": one of "control_node", "ports"'),
        ('"127.0.0.9"', '"127.0.0.9"\nscn_port = 0', ":19: isns.scn_port = 0: a whole number from 1 to 65535"),
        ('"127.0.0.9"', '"127.0.0.9"\nrefresh = "10ms"', ':19: isns.refresh = "10ms": a time of whole milliseconds'),
        (
            '"127.0.0.9"',
            '"127.0.0.9"\nregistration_period = "20s"',
            ':19: isns.registration_period = "20s": a time of at least twice refresh',
        ),
        ('"127.0.0.9"', '"127.0.0.9"\nport = 3205', ":19: isns.port = 3205: unknown key"),
    ],
)
def test_a_fault_of_the_name_server_is_named_with_its_place(
    tmp_path: Path, old: str, new: str, expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert old in ISNS
    file = written(tmp_path, GOOD + IP + ISNS.replace(old, new, 1))
    assert call(["gateway", "run", str(file)]) == 2
    error = capsys.readouterr().err
    assert f"{file}{expected}" in error and error.count("\n") == 1, error


def test_a_name_server_needs_an_address_that_others_reach(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="beside \\[\\[peer\\]\\], \\[isns\\] and \\[tls\\]"):
        load(written(tmp_path, GOOD + ISNS))
    own = IP.replace('"127.0.0.1:3420"', '"0.0.0.0:3420"\nplaintext = true')
    with pytest.raises(InputError, match="ip.listen.*at which others reach this gateway"):
        load(written(tmp_path, GOOD + own + ISNS))


def test_the_wait_for_exchanges_has_a_unit_and_a_bound(tmp_path: Path) -> None:
    own = "[fabric]\n"
    assert own in GOOD and load(written(tmp_path, GOOD)).fabric.drain_timeout == 10 * 10**9
    text = GOOD.replace(own, f'{own}drain_timeout = "500ms"\n')
    assert load(written(tmp_path, text)).fabric.drain_timeout == 500 * 10**6
    for wrong in ("10", '"10"', '"1h"'):
        with pytest.raises(InputError, match="drain_timeout"):
            load(written(tmp_path, GOOD.replace(own, f"{own}drain_timeout = {wrong}\n")))


def test_a_congestion_control_that_is_not_there_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = GOOD + IP.replace("[[peer]]", 'congestion_control = "no_such"\n[[peer]]')
    assert call(["gateway", "run", str(written(tmp_path, text))]) == 2
    error = capsys.readouterr().err
    assert ':9: ip.congestion_control = "no_such": not in this kernel: `elephan kernel load no_such`' in error


def test_an_address_of_another_domain_is_named_and_stays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    addresses = tmp_path / "gateway.addresses"
    addresses.write_text("20:00:00:00:00:00:00:01 010100\n20:00:00:00:00:00:00:02 020100\n")
    assert call(["gateway", "run", str(written(tmp_path, GOOD))]) == 2
    error = capsys.readouterr().err
    assert f"{addresses}: line 2: 020100: an address from 010100 to 01ffff would be right" in error
    assert addresses.read_text().endswith("02 020100\n")


SECOND = """
[[peer]]
name = "room-c"
address = "127.0.0.3:3420"
port = [{ name = "20:00:00:1b:32:0a:0b:0e", id = "030100" }]
"""
NO_WWN = "a world wide name of 16 hex"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('"127.0.0.2:3420"', '"127.0.0.1:3420"', 'peer.0.address = "127.0.0.1:3420": the address of another gateway'),
        ('"127.0.0.2:3420"', '"127.0.0.2:0"', 'peer.0.address = "127.0.0.2:0": the address and the port at which'),
        ('"127.0.0.2:3420"', '"[::1]:3420"', 'peer.0.address = "[::1]:3420": an IPv4 address, as ip.listen is one'),
        ('"127.0.0.2:3420"', '"127.0.0.2:٣٤٢٠"', 'peer.0.address = "127.0.0.2:٣٤٢٠": an IP address with a port'),
        (
            '"127.0.0.3:3420"',
            '"127.0.0.2:3421"',
            'peer.1.address = "127.0.0.2:3421": an IP address that no other peer has, as a peer is known by it; room-b',
        ),
        ('"room-c"', '"room-b"', 'peer.1.name = "room-b": a name that no other peer has'),
        (
            '"030100"',
            '"020100"',
            'peer.1.port.0.id = "020100": an address that no other port has; one of room-b has it',
        ),
        ('"030100"', '"000100"', 'peer.1.port.0.id = "000100": an address of a domain from 01 to ef'),
        ('"030100"', '"f00100"', 'peer.1.port.0.id = "f00100": an address of a domain from 01 to ef'),
        (
            '"20:00:00:1b:32:0a:0b:0e"',
            '"00:00:00:00:00:00:00:00"',
            f'port.0.name = "00:00:00:00:00:00:00:00": {NO_WWN}',
        ),
        (
            '"20:00:00:1b:32:0a:0b:0e"',
            '"10:00:00:1b:32:0a:0b:0c"',
            'peer.1.port.0.name = "10:00:00:1b:32:0a:0b:0c": a name other than that of the fabric',
        ),
        ("port = [{", "port = {", "a list of tables: [[peer.port]] in place of [peer.port]"),
        (
            "[[peer]]",
            'congestion_control = ""\n[[peer]]',
            'ip.congestion_control = "": the name of a congestion control',
        ),
        ("[isns]", "[isns]\nscn_port = 3420", "isns.scn_port = 3420: a port other than that of ip.listen"),
        ('"127.0.0.9"', '"127.0.0.1:3420"', 'isns.server = "127.0.0.1:3420": the address of a name server'),
        ('"127.0.0.9"', '"::1"', 'isns.server = "::1": an IPv4 address, as ip.listen is one'),
        (
            "[isns]",
            '[statistics]\nprometheus = "127.0.0.1:3420"\n[isns]',
            'statistics.prometheus = "127.0.0.1:3420": a port other than that of ip.listen',
        ),
        (
            "[isns]",
            '[statistics]\nprometheus = "127.0.0.1:3300"\n[isns]\nscn_port = 3300',
            'statistics.prometheus = "127.0.0.1:3300": a port other than isns.scn_port',
        ),
        (
            "[ethernet]",
            'addresses = "gateway.toml"\n[ethernet]',
            'fabric.addresses = "gateway.toml": a file of its own',
        ),
        ("[ethernet]", 'addresses = "."\n[ethernet]', 'fabric.addresses = ".": a file of its own'),
    ],
)
def test_what_contradicts_another_key_is_named(
    tmp_path: Path, old: str, new: str, expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = GOOD + IP + SECOND + ISNS
    assert old in text
    load(written(tmp_path, text))
    text = text.replace(old, new, 1)
    text = text.replace('030100" }]', '030100" }') if "port = {" in new else text
    file = written(tmp_path, text)
    assert call(["gateway", "check", str(file)]) == 2
    error = capsys.readouterr().err
    assert expected in error and error.startswith(f"error: {file}:") and error.count("\n") == 1, error


def test_two_spellings_of_a_socket_are_one(tmp_path: Path) -> None:
    sockets = '[[socket]]\nlocal = "a"\nremote = "./a"'
    text = GOOD.replace('[ethernet]\ninterface = "eth1"', sockets)
    with pytest.raises(InputError, match=r'socket.0.remote = "./a": a path that no other key has'):
        load(written(tmp_path, text))
    with pytest.raises(InputError, match=r'fabric.addresses = "b": a file of its own'):
        load(written(tmp_path, text.replace("[[socket]]", 'addresses = "b"\n[[socket]]').replace("./a", "b")))
