"""Sizes of the kernel's socket buffers, by the window that they have to offer."""

from __future__ import annotations

from elephan.run_spec.route import PACKET_OVERHEAD_BYTES

INT_MAX = 2**31 - 1
"""Most that a sysctl of a buffer takes, bytes."""


def buffer_for(window: int, mtu_bytes: int, overhead_bytes: int = PACKET_OVERHEAD_BYTES) -> int:
    """Return the receive buffer of which the kernel offers `window` bytes by itself.

    Packets have the MTU, of which `overhead_bytes` are headers.

    It offers the part of the buffer that payload has in the memory of a packet (tcp_measure_rcv_mss in
    net/ipv4/tcp_input.c): a piece of a power of two for packet, headroom and struct skb_shared_info, and the sk_buff.
    """
    piece = 1 << (mtu_bytes + 384 - 1).bit_length()
    return -(-window * (piece + 256) // (mtu_bytes - overhead_bytes))
