"""A node on an Ethernet interface, in bytes of its own: finds a forwarder, logs in, speaks FC (FC-BB-5, FC-LS)."""

from __future__ import annotations

import socket
import struct
import time
import zlib
from collections.abc import Callable
from pathlib import Path

from elephan.network_namespace import within

FIP, FCOE = 0x8914, 0x8906
ALL_FCFS = bytes.fromhex("011018010002")
ALL_NODES = bytes.fromhex("011018010001")
PATIENCE_S = 20
FABRIC_PORT, DIRECTORY = 0xFFFFFE, 0xFFFFFC
SOF_I3, SOF_N3, EOF_T = 0x2E, 0x36, 0x42
FLOGI, PLOGI, LS_ACC = 0x04, 0x03, 0x02
ELS_REQUEST, ELS_REPLY, DATA, COMMAND, RESPONSE = 0x22, 0x23, 0x01, 0x06, 0x07
REQUEST, ANSWER = 0x290000, 0x990000
"""F_CTL: the first sequence, whose receiver goes on, or the responder's last one."""
FPMA = 0x8000
PACKET_HOST_ALL = 0x0003


class Node:
    """A port with an Ethernet address; its names end in the same number."""

    def __init__(self, interface: str, number: int, vlan: int | None = None) -> None:
        """Open the interface: in this thread's network namespace."""
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(PACKET_HOST_ALL))
        self.socket.bind((interface, 0))
        self.socket.settimeout(0.1)
        self.own = bytes([0x52, 0x54, 0, 0, 0, number])
        self.name = bytes([0x20, 0, *self.own])
        self.vlan = vlan
        self.forwarder = self.granted = bytes(6)
        self.id = 0

    def log_in(self) -> None:
        """Solicit, and send FLOGI by FIP."""
        # Descriptors: MAC address, name, largest FCoE frame (2158 bytes).
        self._send(ALL_FCFS, self.own, FIP, _fip(1, 1, _mac(self.own), _name(self.name), b"\x06\x01\x08\x6e"))
        answer = self.wait(FIP, lambda content: content[2:6] == b"\0\1\0\2" and content[9] & 2 != 0)
        self.forwarder = _descriptor(answer, 2)[2:8]
        login = _header(ELS_REQUEST, FABRIC_PORT, 0, 1) + self._parameters(FLOGI)
        descriptor = bytes([7, (2 + 2 + len(login)) // 4]) + bytes(2) + login
        self._send(self.forwarder, self.own, FIP, _fip(2, 1, descriptor, _mac(bytes(6))))
        answer = self.wait(FIP, lambda content: content[2:6] == b"\0\2\0\2")
        accepted = _descriptor(answer, 7)[4:]
        assert accepted[24] == LS_ACC, accepted.hex()
        self.id = int.from_bytes(accepted[1:4], "big")
        self.granted = _descriptor(answer, 2)[2:8]

    def log_in_to_name_server(self) -> None:
        """Send PLOGI to the name server, and wait for its accept."""
        self.send_fc(_header(ELS_REQUEST, DIRECTORY, self.id, 1) + self._parameters(PLOGI))
        frame = self.receive_fc()
        assert (frame[0], frame[24]) == (0x23, LS_ACC), frame.hex()

    def send_data(self, to: int, payload: bytes) -> None:
        """Send a frame of SCSI data to another port."""
        self.send_fc(_header(DATA, to, self.id, 8) + payload)

    def ask_for_login(self, to: int) -> None:
        """Send PLOGI to a port, and wait for its accept."""
        self.send_fc(_header(ELS_REQUEST, to, self.id, 1) + self._parameters(PLOGI))
        frame = self.receive_fc()
        assert (frame[0], frame[24]) == (ELS_REPLY, LS_ACC), frame.hex()

    def log_in_to_port(self, other: Node) -> None:
        """Send PLOGI to another node, which accepts it."""
        self.send_fc(_header(ELS_REQUEST, other.id, self.id, 1) + self._parameters(PLOGI))
        asked = other.receive_fc()
        assert (asked[0], asked[24]) == (ELS_REQUEST, PLOGI), asked.hex()
        other.send_fc(_header(ELS_REPLY, self.id, other.id, 1, ANSWER) + other._parameters(LS_ACC))
        frame = self.receive_fc()
        assert (frame[0], frame[24]) == (ELS_REPLY, LS_ACC), frame.hex()

    def send_command(self, to: int, command: bytes) -> None:
        """Send a command of SCSI (FCP_CMND)."""
        self.send_fc(_header(COMMAND, to, self.id, 8) + command)

    def send_response(self, to: int, response: bytes) -> None:
        """Send the end of a command of SCSI (FCP_RSP)."""
        self.send_fc(_header(RESPONSE, to, self.id, 8, ANSWER) + response)

    def send_fc(self, frame: bytes) -> None:
        """Send an FC frame: header and payload."""
        crc = struct.pack("<I", zlib.crc32(frame))
        self._send(
            self.forwarder, self.granted, FCOE, bytes(13) + bytes([SOF_I3]) + frame + crc + bytes([EOF_T, 0, 0, 0])
        )

    def receive_fc(self) -> bytes:
        """Return the next FC frame, header and payload."""
        content = self.wait(FCOE, lambda content: True)
        frame, crc = content[14:-8], content[-8:-4]
        assert struct.pack("<I", zlib.crc32(frame)) == crc
        return frame

    def wait(self, kind: int, wanted: Callable[[bytes], bool]) -> bytes:
        """Return the content of the next frame of a type, without the Ethernet header, that is wanted."""
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            try:
                # Without its tag, which the kernel takes off.
                frame, address = self.socket.recvfrom(4096)
            except TimeoutError:
                continue
            # The interface has several nodes, each with a socket, which sees the frames of all.
            if address[2] == socket.PACKET_OUTGOING or frame[:6] not in (self.own, self.granted, ALL_NODES):
                continue
            if int.from_bytes(frame[12:14], "big") == kind and wanted(frame[14:]):
                return frame[14:]
        raise AssertionError(f"no frame of type {kind:#x} in {PATIENCE_S} s")

    def close(self) -> None:
        """Close the interface."""
        self.socket.close()

    def _send(self, to: bytes, source: bytes, kind: int, content: bytes) -> None:
        tag = b"" if self.vlan is None else struct.pack(">HH", 0x8100, 3 << 13 | self.vlan)
        self.socket.send((to + source + tag + struct.pack(">H", kind) + content).ljust(60, b"\0"))

    def _parameters(self, command: int) -> bytes:
        """Service parameters of 116 bytes: FC-PH 4.3, 8 credits, class 3 (FC-LS, 6.6)."""
        common = struct.pack(">BBHHHHHI", 0x20, 0x20, 8, 0x0000 if command == FLOGI else 0x8800, 2048, 255, 0, 2000)
        node = bytes([0x10, 0, *self.own])
        class3 = struct.pack(">HHHHHHHH", 0x8800, 0, 0, 2048, 255, 0, 1, 0)
        return bytes([command, 0, 0, 0]) + common + self.name + node + bytes(32) + class3 + bytes(32)


def within_namespace(name: str, act: Callable[[], Node]) -> Node:
    """Return a node that `act` makes in a network namespace."""
    return within(Path("/run/netns") / name, act)


def _header(r_ctl: int, to: int, source: int, kind: int, control: int = REQUEST) -> bytes:
    return struct.pack(">IIIIHHI", r_ctl << 24 | to, source, kind << 24 | control, 0, 7, 0xFFFF, 0)


def _fip(operation: int, sub: int, *descriptors: bytes) -> bytes:
    content = b"".join(descriptors)
    return struct.pack(">BBHBBHH", 0x10, 0, operation, 0, sub, len(content) // 4, FPMA) + content


def _mac(address: bytes) -> bytes:
    return b"\x02\x02" + address


def _name(name: bytes) -> bytes:
    return b"\x04\x03\0\0" + name


def _descriptor(content: bytes, wanted: int) -> bytes:
    """Return the first descriptor of a type in a FIP message."""
    rest = content[10:]
    while len(rest) >= 4 and rest[1]:
        if rest[0] == wanted:
            return rest[: rest[1] * 4]
        rest = rest[rest[1] * 4 :]
    raise AssertionError(f"no descriptor {wanted} in {content.hex()}")
