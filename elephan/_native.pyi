# Types of the native core (crates/python/src), which documents each name. stubtest compares the two.

from collections.abc import Callable, Sequence
from typing import Any, Literal, NotRequired, Self, TypeAlias, TypedDict, final

import numpy as np
import numpy.typing as npt

from elephan.blocktrace import BlockTrace

__all__ = [
    "BackupVersions",
    "BpfError",
    "BpfMap",
    "BpfObject",
    "ChangeDetector",
    "CompileError",
    "ControlSettings",
    "CopyEnd",
    "CopyFault",
    "CopyVerification",
    "Emulator",
    "FC_NS_PER_KM",
    "FcGateway",
    "FcPort",
    "HOOKS",
    "HOOK_CALL_BYTES",
    "IscsiServer",
    "LinePort",
    "NoClang",
    "PathReflector",
    "PathSession",
    "PathSessions",
    "QUANTILES_PER_MILLE",
    "RunResult",
    "Stopped",
    "builtin_object",
    "builtin_objects_compiler",
    "check_object",
    "check_trace",
    "check_trace_columns",
    "compile_bpf",
    "compile_cc",
    "congestion_controls",
    "copy_forget",
    "copy_keys",
    "copy_removals",
    "copy_scan",
    "detection_trial",
    "diagnose_flows",
    "disk_describe",
    "disk_names",
    "disk_replay",
    "disk_schedulers",
    "disk_validate",
    "fc_port_speeds",
    "hosts_result",
    "iscsi_bench",
    "iscsi_discover",
    "iscsi_memory",
    "kernel_has_struct",
    "likely_cause",
    "parse_rate",
    "parse_size",
    "parse_span",
    "parse_wwn",
    "path_session",
    "path_test",
    "path_test_names",
    "registered_controls",
    "replay_calls",
    "run_on_kernel",
    "run_spec_schema",
    "simulate",
    "simulate_path_test",
    "synthetic_calls",
    "trace_formats",
    "unregister_control",
    "version",
    "watch_flows",
]

version: str
FC_NS_PER_KM: int
HOOKS: list[str]
QUANTILES_PER_MILLE: list[int]
HOOK_CALL_BYTES: int

_Column: TypeAlias = npt.NDArray[np.float64] | npt.NDArray[np.int32] | npt.NDArray[np.uint32] | npt.NDArray[np.uint64]
_Metrics: TypeAlias = dict[str, int | float | str | list[float]]
# metrics; lightpaths and move_log; timeline.
_Manager: TypeAlias = dict[str, _Metrics | list[_Metrics] | dict[str, list[float] | list[int]]]
_Secret: TypeAlias = tuple[str, str]  # Name and secret.
_Told: TypeAlias = Callable[[int, int], object]  # Called with now and the end of the run, ns; true: the run is to stop.

# Exceptions. The core sets their attributes where it raises them.

class BpfError(Exception):
    kind: Literal["load", "call", "object"]
    reason: str
    errno: int | None
    program: str
    log: str
    messages: list[str]

class CompileError(ValueError):
    problems: list[_Problem]

class NoClang(ValueError): ...

class CopyFault(Exception):
    """A copy ended early; what is durable stays, and the same copy goes on from there."""

    kind: str
    """As the agent's errors: "input", "port", "peer", "token", "protocol", "full", "kernel", "busy", "stopped"."""
    text: str
    """One line."""

class Stopped(Exception): ...

# Dicts that functions return.

class _CopyKeys(TypedDict):
    token: str
    certificate: str
    key: str

class _Problem(TypedDict):
    line: int | None
    what: str
    code: str
    hint: str | None

class _Param(TypedDict):
    name: str
    unit: str
    default: int
    min: int
    max: int
    scale: int
    doc: str

class _CongestionControl(TypedDict):
    name: str
    summary: str
    source: str
    hooks: list[str]
    code: str
    params: list[_Param]
    warnings: NotRequired[list[_Problem]]  # Of `compile_cc` alone.

class _RegisteredControl(TypedDict):
    name: str
    map_id: int
    in_use: bool
    label: str
    hashes: dict[str, int]
    parameters: dict[str, tuple[int, dict[str, str]]]

class _Difference(TypedDict):
    step: int
    connection: int
    hook: str
    field: str
    bpf: int
    native: int

class _Comparison(TypedDict):
    steps: int
    by_hook: dict[str, int]
    connections: int
    unpaired: int
    breaks: int
    ticked: int
    differing: int
    differences: list[_Difference]
    reductions: list[tuple[int, int, int]]
    cwnd_range: tuple[int, int] | None

_Zone: TypeAlias = tuple[int, int, int, int, int]  # First and last cylinder, sectors, slips, remaps.

class _Drive(TypedDict):
    kind: Literal["drive"]
    name: str
    blocks: int
    scheduler: str
    rpm: int
    surfaces: int
    cylinders: int
    zones: list[_Zone]
    seek_one_ns: int | None
    seek_third_ns: int | None
    seek_full_ns: int | None
    read_block_ns: int
    write_block_ns: int
    segments: int
    segment_blocks: int
    write_back: bool

class _Flash(TypedDict):
    kind: Literal["flash"]
    name: str
    blocks: int
    scheduler: str
    channels: int
    dies: int
    page_blocks: int
    read_ns: int
    program_ns: int
    queue_depth: int

class _Requests(TypedDict):
    requests: int
    response_mean_ns: float | None
    response_p50_ns: int | None
    response_p95_ns: int | None
    response_p99_ns: int | None
    response_p999_ns: int | None
    response_max_ns: int | None
    service_mean_ns: float | None
    service_p50_ns: int | None
    service_p95_ns: int | None
    service_p99_ns: int | None
    service_p999_ns: int | None
    service_max_ns: int | None

class _Replay(TypedDict):
    disk: str
    scheduler: str
    disks: int
    bytes: int
    out_of_range: int
    others: int
    span_ns: int
    most_outstanding: int
    mean_outstanding: float
    busy: float | None
    recorded_response_ns: float | None
    reads: _Requests
    writes: _Requests
    all: _Requests

class _Validation(TypedDict):
    disk: str
    requests: int
    simulated_ns: int
    measured_ns: int
    demerit_ns: int
    disksim_rms_ns: int
    percentiles_ns: list[tuple[int, int]]

class _Commands(TypedDict):
    done: int
    bytes: int
    latency_mean_ns: float | None
    latency_p50_ns: int | None
    latency_p99_ns: int | None
    latency_max_ns: int | None

class _Bench(TypedDict):
    reads: _Commands
    writes: _Commands
    failed: int
    first_failure: str | None
    unfinished: int
    lost: int
    window_is_limit: bool
    window_waits: int
    window_width: int
    ended: str | None
    elapsed_ns: int
    connections: int
    agreed: str
    congestion_control: str
    capacity_bytes: int

class _Detection(TypedDict):
    flows: int
    bytes: int
    active_max: int
    elephants: int
    elephant_bytes: int
    misses: int
    unfound_bytes: int
    false_positives: int
    near_false_positives: int
    evictions: int
    delay_sum_s: float

class _Link(TypedDict):
    delivered_packets: int
    delivered_bytes: int
    dropped_packets: int
    dropped_by_queue: int
    dropped_by_aqm: int
    dropped_by_loss: int
    dropped_by_outage: int
    marked_packets: int
    queue_max_packets: int
    queue_max_bytes: int

class _Background(TypedDict):
    sent_packets: int
    received_packets: int
    dropped_packets: int

class _Counters(TypedDict):
    at_ns: int
    links: list[_Link]
    background: list[_Background]
    flow_dropped_packets: list[int]

class _Command(TypedDict):
    event: int
    flow: int
    number: int
    due_s: float
    due_monotonic_ns: int
    given_monotonic_ns: int
    refused: str | None

class _Routers(TypedDict):
    expired_packets: int
    too_big_packets: int
    fragmented_packets: int
    icmp_messages: int

class _Report(_Counters):
    late_count: int
    late_p50_ns: int | None
    late_p99_ns: int | None
    late_max_ns: int | None
    waited_count: int
    waited_p50_ns: int | None
    waited_p99_ns: int | None
    waited_max_ns: int | None
    refused_packets: int
    joined_packets: int
    unroutable_packets: int
    routers: _Routers
    stalls: int
    stalled_ns: int
    cpu_ns: int
    traffic_cpu_ns: int
    elapsed_ns: int
    precedence: bool
    failure: str | None
    event_times_s: list[float | None]
    commands: list[_Command]

class _Settings(TypedDict, total=False):
    header_digest: _Digest
    data_digest: _Digest
    max_connections: int
    initial_r2t: bool
    immediate_data: bool
    max_recv_bytes: int
    max_burst_bytes: int
    first_burst_bytes: int
    max_outstanding_r2t: int

_Digest: TypeAlias = Literal["off", "allowed", "preferred", "required"]

# BPF objects, maps and congestion controls in the kernel.

@final
class ControlSettings:
    def __new__(
        cls,
        name: str,
        parameters: dict[str, int] = ...,
        label: str = "",
        restricted: bool = False,
        listens: bool = False,
        linked: bool = False,
    ) -> Self: ...

@final
class BpfObject:
    def __new__(cls, compiled: bytes, settings: ControlSettings | None = None) -> Self: ...
    def variables_bytes(self) -> int: ...
    def variables(self) -> bytes: ...
    def run(self, program: str, variables: bytes) -> bytes: ...
    def record(self, map: str) -> None: ...
    def collect(self) -> None: ...
    def records(self, map: str) -> bytes: ...
    def register(self) -> None: ...
    def close(self) -> None: ...

@final
class BpfMap:
    def __new__(cls, id: int) -> Self: ...
    @property
    def id(self) -> int: ...
    def entries(self) -> dict[bytes, bytes]: ...

def check_object(
    compiled: bytes, settings: ControlSettings | None = None, register: bool = False
) -> tuple[int, int]: ...
def registered_controls(mark: str) -> list[_RegisteredControl]: ...
def unregister_control(map_id: int) -> None: ...
def kernel_has_struct(name: str) -> bool: ...

# Congestion controls, and their two builds side by side.

def congestion_controls() -> list[_CongestionControl]: ...
def compile_cc(path: str) -> _CongestionControl: ...
def compile_bpf(
    path: str, code: str, kernel_name: str | None = None, build: Literal["kernel", "record", "step"] = "kernel"
) -> tuple[bytes, str, list[_Problem]]: ...
def builtin_object(name: str) -> bytes | None: ...
def builtin_objects_compiler() -> str | None: ...
def replay_calls(name: str, values: dict[str, int], recording: bytes) -> _Comparison: ...
def synthetic_calls(name: str, values: dict[str, int], seed: int, count: int) -> bytes: ...

# Runs.

@final
class RunResult:
    @property
    def metrics(self) -> _Metrics: ...
    @property
    def other_threads_cpu_s(self) -> float: ...
    @property
    def flows(self) -> list[_Metrics]: ...
    @property
    def flow_groups(self) -> list[_Metrics]: ...
    @property
    def links(self) -> list[_Metrics]: ...
    @property
    def background(self) -> list[_Metrics]: ...
    @property
    def short_flows(self) -> list[_Metrics]: ...
    @property
    def manager(self) -> _Manager | None: ...
    @property
    def extrapolation(self) -> _Metrics | None: ...
    @property
    def notes(self) -> list[str]: ...
    @property
    def event_times_s(self) -> list[float | None]: ...
    @property
    def windows(self) -> list[_Metrics]: ...
    @property
    def cwnd_reductions(self) -> list[_Metrics]: ...
    @property
    def flow_series(self) -> dict[str, _Column]: ...
    @property
    def link_series(self) -> dict[str, _Column]: ...

@final
class Emulator:
    def __new__(cls, hosts_json: str) -> Self: ...
    def start(self, spec_json: str, plan_json: str) -> None: ...
    def set_route(self, flow: int, links: Sequence[int], back: bool = False) -> None: ...
    def change(self, change_json: str) -> None: ...
    def event_times(self) -> list[float | None]: ...
    def has_failed(self) -> bool: ...
    def snapshot(self) -> _Counters | None: ...
    def stop(self) -> _Report | None: ...

def run_spec_schema() -> str: ...
def simulate(
    spec_json: str, progress: _Told | None = None, progress_interval_s: float = 0.1, cores: int = 1
) -> RunResult: ...
def run_on_kernel(
    spec_json: str,
    plan_json: str,
    carrier: Emulator | Callable[[], Sequence[dict[str, int]]],
    progress: _Told | None = None,
    progress_interval_s: float = 0.1,
) -> tuple[RunResult, _Report]: ...
def hosts_result(outcome_json: str, series_json: list[str]) -> RunResult: ...
def simulate_path_test(
    spec_json: str,
    test_json: str,
    at_json: str = "{}",
    progress: _Told | None = None,
    progress_interval_s: float = 0.1,
) -> str:
    """Run a path test (keys of `path_test::registry::Settings`) beside a run's traffic, at the place `at_json` (keys of
    `experiment::PathTestSpec`), and return {"outcome": ..., "truth": ...} as JSON.

    `progress` as of `simulate`. Raises ValueError: one of the three is wrong, or the run ends before the test."""

def detection_trial(spec_json: str) -> _Detection: ...

# Changes of a path.

@final
class ChangeDetector:
    def __new__(cls, config_json: str, state_json: str | None = None) -> Self: ...
    def handle_sample(self, at_s: float, value: float | None) -> str | None: ...
    def benchmark(self, at_s: float) -> tuple[float, float, float] | None: ...
    def state(self) -> str: ...

def likely_cause(evidence_json: str) -> str: ...

# Traces and disks.

def check_trace(path: str, format: str, columns: str | None = None) -> BlockTrace: ...
def check_trace_columns(columns: str) -> None: ...
def trace_formats() -> list[str]: ...
def disk_names() -> list[str]: ...
def disk_schedulers() -> list[str]: ...
def disk_describe(text: str) -> _Drive | _Flash: ...
def disk_replay(
    trace: str,
    format: str,
    columns: str | None,
    disk_text: str,
    scheduler: str | None,
    closed: int | None,
    device: int | None,
    out_of_range: str,
    time_scale_e6: int,
) -> _Replay: ...
def disk_validate(trace: str, disk_text: str) -> _Validation: ...

# Fibre Channel on real sockets.

_Port: TypeAlias = tuple[int | None, int, int, int]
# Server, entity, control node's name, port for notifications, refresh and registration period in ns.
_Isns: TypeAlias = tuple[str, str, str | None, int | None, int, int]
_Ip: TypeAlias = tuple[
    str,
    str | None,
    bool,
    tuple[str, str, str] | None,
    Sequence[tuple[str, str, Sequence[_Port]]],
    _Isns | None,
]

@final
class FcGateway:
    def __new__(
        cls,
        fabric: int,
        domain: int,
        addresses: str,
        interface: str | None,
        sockets: Sequence[tuple[str, str]],
        vlan: int | None,
        sends_pause: bool,
        priority: int,
        fc_map: int,
        keep_alive_ms: int,
        drain_ns: int,
        ip: _Ip | None = None,
    ) -> Self: ...
    def drain_log(self) -> list[str]: ...
    def is_running(self) -> bool: ...
    def counters(self) -> dict[str, int]: ...
    def ports(self) -> list[tuple[str, str, str, bool, bool]]: ...
    def address(self) -> str | None: ...
    def peers(self) -> list[tuple[str, bool, bool]]: ...
    def isns(self) -> tuple[str, str, bool, int, int, int | None, int] | None: ...
    def sessions(self) -> list[tuple[str, str, str, bool, int, int, int, int, int]]: ...
    def exchanges(self) -> int: ...
    def begin_stop(self) -> None: ...
    def stop(self) -> None: ...

@final
class FcPort:
    def __new__(
        cls,
        interface: str | None,
        socket: tuple[str, str] | None,
        vlan: int | None,
        name: int | None,
        wait_for_termination: Callable[[float | None], bool],
    ) -> Self: ...
    def name(self) -> str: ...
    def id(self) -> str: ...
    def take_log(self) -> list[str]: ...
    def log_in(self, within_ns: int) -> str: ...
    def ports(self, within_ns: int) -> list[tuple[str, str | None, str | None, list[str]]]: ...
    def find(self, name: int, within_ns: int) -> int | None: ...
    def log_in_to(self, id: int, within_ns: int) -> str: ...
    def ping(self, id: int, echo_bytes: int | None) -> tuple[int, bool] | None: ...
    def start_load(
        self,
        id: int,
        rate: int,
        share_per_mille: int,
        sizes: Sequence[tuple[int, int]],
        duration_ns: int,
        number: int,
    ) -> None: ...
    def end_load(self) -> None: ...
    def serve(self, span_ns: int) -> None: ...
    def sent(self) -> dict[str, Any] | None: ...
    def received(self) -> list[tuple[str, int, int | None, dict[str, int]]]: ...
    def log_out(self) -> bool: ...

def parse_wwn(text: str) -> int: ...

# Line tests on an Ethernet interface. Objects come as JSON (elephan.line.trial).

@final
class LinePort:
    def __new__(
        cls,
        interface: str,
        method: str | None,
        address: str | None,
        vlan: int | None,
        wait_for_termination: Callable[[float | None], bool],
    ) -> Self: ...
    def info(self) -> str: ...
    def find(self, address: str | None, within_ns: int) -> str: ...
    def serve(self, span_ns: int) -> None: ...
    def streams(self) -> str: ...
    def start(self, spec: str) -> None: ...
    def run(self, span_ns: int) -> bool: ...
    def end(self) -> None: ...
    def take_series(self) -> str: ...
    def result(self) -> str: ...
    def take_log(self) -> list[str]: ...

# Path tests over UDP (docs/howto/measure-a-path.md). Outcomes are JSON (crates/path-test/src/estimate.rs).

@final
class PathSessions:
    """STAMP sessions to many reflectors, which one thread serves: packets leave and replies are read in `poll` alone.

    `key`: HMAC key of both ends. `packet_bytes`: from the IP header on; 0: the least. `traffic_class`: DSCP and ECN.
    `delay_ns`: until the first packet. ValueError for a name that nobody knows, OSError where there is no route.
    """

    def __new__(cls) -> Self: ...
    def add(
        self,
        towards: str,
        *,
        key: bytes | None,
        interval_ns: int,
        packet_bytes: int = 0,
        timeout_ns: int = 2_000_000_000,
        count: int | None = None,
        traffic_class: int = 0,
        time_format: str = "ntp",
        delay_ns: int = 0,
    ) -> int: ...
    def remove(self, session: int) -> None: ...
    def poll(self, timeout_s: float) -> list[dict[str, Any]]:
        """Return the samples of answered and lost packets as soon as there are some, else [] after the time or a
        signal; a session's in the order of sending: `session`, `sequence`, `sent_unix_ns`, `rtt_ns` (None: lost),
        `forward_ns` and `reverse_ns` (one-way delays by the estimated clock of the far end), `one_way_error_ns` (their
        largest error), `forward_ttl`, `ttl`, `jitter_ns` (RFC 3550, of the round trip), `duplicates`, `is_reordered`,
        `reorder_extent`, `is_forward_reordered`, `clock_stepped`, `late_ns` (of this host, with sending or reading),
        `residence_ns` (at the reflector).
        """
    def is_done(self) -> bool: ...
    def state(self, session: int) -> str:
        """Return JSON: `towards`, `packets`, `bytes`, `fault` (the latest ICMP error or refusal of this host, or null),
        `clock` {`offset_ns`, `error_ns`, `skew_ppb`, `steps`, `last_step_ns`} of the far end against this host's,
        `unused`, `lost_forward`.
        """
    def close(self) -> None: ...

@final
class PathSession:
    def poll(self, timeout_s: float) -> list[dict[str, Any]]: ...
    def is_done(self) -> bool: ...
    def state(self) -> str: ...
    def close(self) -> None: ...

def path_session(
    towards: str,
    *,
    key: bytes | None,
    interval_ns: int,
    packet_bytes: int = 0,
    timeout_ns: int = 2_000_000_000,
    count: int | None = None,
    traffic_class: int = 0,
    time_format: str = "ntp",
) -> PathSession: ...
def path_test(
    test_json: str,
    wait_for_termination: Callable[[float], bool],
    progress: Callable[[str], object] | None = None,
) -> str:
    """Run the test that `test_json` names and return its outcome as JSON.

    Keys of all tests: `test`, `towards`, `key` (hexadecimal, optional). Those of `stamp`: `count`, `interval_ns`,
    `packet_bytes`, `timeout_ns`, `traffic_class`, `time_format`; its outcome has `counts` and `stopped`, too. Each
    `progress` is JSON: {"sample": {...}} or {"train": {"packets", "bytes"}}. ValueError for keys that are wrong,
    OSError where this host refuses, `Stopped` where an estimator was told to stop.
    """

def path_test_names() -> list[str]: ...

@final
class PathReflector:
    def __new__(
        cls,
        addresses: Sequence[str],
        *,
        key: bytes | None = None,
        is_stateful: bool = True,
        short_replies: bool = False,
    ) -> Self: ...
    def addresses(self) -> list[str]: ...
    def serve(self, wait_for_termination: Callable[[float], bool]) -> None: ...
    def counts(self) -> str: ...

# iSCSI on real sockets.

@final
class IscsiServer:
    def __new__(
        cls,
        name: str,
        luns: Sequence[tuple[str, bool, bool, int]],
        portals: Sequence[str],
        chap: _Secret | None,
        mutual: _Secret | None,
        own: _Settings,
        max_connections: int,
        per_address: int,
        window: int,
        memory_bytes: int,
        congestion_control: str | None = None,
    ) -> Self: ...
    def addresses(self) -> list[str]: ...
    def drain_log(self) -> list[str]: ...
    def counts(self) -> tuple[int, int, int]: ...
    def request_logout(self, seconds: int) -> None: ...
    def stop(self) -> None: ...

def iscsi_memory(max_connections: int, memory_bytes: int, window: int, own: _Settings) -> tuple[int, int, int]: ...
def iscsi_discover(address_text: str, name: str, chap: _Secret | None) -> list[tuple[str, str]]: ...
def iscsi_bench(
    address_text: str,
    name: str,
    target: str,
    lun: int,
    chap: _Secret | None,
    mutual: _Secret | None,
    own: _Settings,
    connections: int,
    read_percent: int,
    io_bytes: int,
    depth: int,
    random: bool,
    duration_ns: int,
    seed: int,
    congestion_control: str | None = None,
    wait_for_termination: Callable[[float], object] | None = None,
) -> _Bench: ...

# Quantities.

def fc_port_speeds() -> list[tuple[str, int]]: ...
def parse_span(text: str) -> int: ...
def parse_rate(text: str) -> int: ...
def parse_size(text: str) -> int: ...

# Flows that are there.

def watch_flows(
    time_ns: int,
    interval_ns: int,
    wait_for_termination: Callable[[float], object],
    *,
    port: int | None = None,
    peer: str | None = None,
    pid: int | None = None,
    namespace: str | None = None,
) -> str: ...
def diagnose_flows(watched_json: str) -> str: ...

# Copies.

def copy_keys() -> _CopyKeys:
    """Draw what one copy needs: its token, and the keys of TLS of the end that listens, as hex digits."""

@final
class CopyEnd:
    """One end of a copy in this process."""

    def __new__(cls, spec_json: str) -> CopyEnd:
        """Take an `EndSpec` (crates/copy) as JSON. ValueError: it is none."""
    def run(self, on_event: Callable[[str], object]) -> str:
        """Run to the end without the GIL; return its `EndReport` as JSON.

        `on_event` takes each event (`copy::Event`, JSON) on this thread; what it raises ends the copy. Raises
        `CopyFault`.
        """
    def stop(self) -> None:
        """Have it end soon, from any thread."""
    def steer(self, change_json: str) -> None:
        """Change it while it runs: a `Steering` as JSON, at the sending end. ValueError: it is none."""

@final
class CopyVerification:
    """A side of a finished copy, checked again against its manifest."""

    def __new__(cls, spec_json: str) -> CopyVerification:
        """Take a `VerifySpec` (crates/copy-net) as JSON. ValueError: it is none."""
    def run(self) -> str:
        """Read and hash each file without the GIL; return `Verified` as JSON. Raises `CopyFault`."""
    def stop(self) -> None:
        """Have it end soon, from any thread."""

def copy_forget(copy: str, destination: str | None) -> int:
    """Remove journals and parts that copy `copy` has left here; return the bytes. Raises `CopyFault`."""

def copy_scan(spec_json: str) -> str:
    """Count what sources have, by metadata: `ScanSpec` to `Scanned` (crates/copy-net), JSON. ValueError: it is none.
    Raises `CopyFault`.
    """

def copy_removals(spec_json: str) -> str:
    """List what a mirror would remove: `RemovalsSpec` to `Removals` (crates/copy-net), JSON. ValueError: it is none.
    Raises `CopyFault`.
    """

# Backups.

@final
class BackupVersions:
    """A question about versions of backups on this machine, or a change of them."""

    def __new__(cls, request_json: str) -> BackupVersions:
        """Take a `VersionsRequest` (crates/copy-net) as JSON. ValueError: it is none."""
    def run(self) -> str:
        """Do it without the GIL; return the answer as JSON. Raises `CopyFault`."""
    def stop(self) -> None:
        """Have a removal end soon, from any thread."""
