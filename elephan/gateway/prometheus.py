"""The counters of a gateway for Prometheus, on an address of this machine."""

from __future__ import annotations

import selectors
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, Metric, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from elephan.core import native
from elephan.gateway.config import Address, address_text
from elephan.metrics_endpoint import Endpoint

PREFIX = "elephan_gateway_"
LOOK_S = 0.2
"""Interval between looks at connections whose time is over, s."""


class Gateway(Collector):
    """Ports, peers, sessions, exchanges and counters of a gateway, read when they are asked for."""

    def __init__(self, gateway: native.FcGateway) -> None:
        self._gateway = gateway

    def collect(self) -> Iterator[Metric]:
        """Return the present values."""
        yield GaugeMetricFamily(f"{PREFIX}ports", "N_Ports, those behind peers included.", len(self._gateway.ports()))
        yield GaugeMetricFamily(f"{PREFIX}sessions", "iFCP sessions.", len(self._gateway.sessions()))
        yield GaugeMetricFamily(f"{PREFIX}exchanges", "Exchanges under way.", self._gateway.exchanges())
        up = GaugeMetricFamily(f"{PREFIX}peer_up", "1 while a peer can be reached.", labels=["peer"])
        for name, is_up, _ in self._gateway.peers():
            up.add_metric([name], int(is_up))
        yield up
        yield from self._isns()
        for name, value in self._gateway.counters().items():
            # Base units: seconds.
            seconds = name.endswith("_ns")
            full = f"{PREFIX}{name.removesuffix('_ns')}{'_seconds' if seconds else ''}"
            yield CounterMetricFamily(full, "See docs/howto/stretch-a-san.md.", value / 1e9 if seconds else value)

    def _isns(self) -> Iterator[Metric]:
        """Return the state of the way to a name server."""
        isns = self._gateway.isns()
        if isns is None:
            return
        _, _, is_registered, local, remote, age_ns, failures = isns
        yield GaugeMetricFamily(f"{PREFIX}isns_registered", "1 while the iSNS server has the gateway.", is_registered)
        yield GaugeMetricFamily(f"{PREFIX}isns_local_ports", "Attached ports, which are registered.", local)
        yield GaugeMetricFamily(f"{PREFIX}isns_remote_ports", "Ports of others that the server listed.", remote)
        if age_ns is not None:
            yield GaugeMetricFamily(
                f"{PREFIX}isns_answer_age_seconds", "Time since the server's last answer.", age_ns / 1e9
            )
        yield CounterMetricFamily(f"{PREFIX}isns_failures", "Connections and requests that failed.", failures)


@contextmanager
def served(address: Address, gateway: native.FcGateway) -> Iterator[str]:
    """Serve /metrics of a gateway; yield ADDRESS:PORT. Raises `RunError` when the address cannot be had."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(Gateway(gateway))
    with selectors.DefaultSelector() as selector:
        endpoint = Endpoint(
            (str(address[0]), address[1]),
            selector,
            lambda: generate_latest(registry).decode(),
            "statistics.prometheus",
        )
        is_over = threading.Event()

        def serve() -> None:
            while not is_over.is_set():
                for key, _ in selector.select(LOOK_S):
                    key.data()
                endpoint.handle_timeout(time.monotonic())

        thread = threading.Thread(target=serve, name="elephan-metrics", daemon=True)
        thread.start()
        try:
            yield address_text((address[0], endpoint.address[1]))
        finally:
            is_over.set()
            thread.join()
            endpoint.close()
