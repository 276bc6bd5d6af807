"""Every wrong input gives one line that names file, key, value and the expected value."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from elephan.errors import InputError
from elephan.scenario import ScenarioError, load
from tests.scenario.conftest import BASE, NETWORK, Load

RATE = (
    "a rate with a unit (bit/s, kbit/s, Mbit/s, Gbit/s, Tbit/s; B/s, kB/s, MB/s, GB/s, TB/s; KiB/s, MiB/s, GiB/s, "
    'TiB/s), such as "45Mbit/s" or "180MB/s"'
)
SPAN = 'a time with a unit (ns, us, ms, s, min or h), such as "25ms" or "1.5s"'
PROBABILITY = 'a probability from 0 to 1, such as 1e-4, "1e-4" or "0.01%"'
LIMIT = 'a queue limit with a unit: packets, bytes or bdp, such as "100 packets", "64kB" or "1bdp"'

#: (override, the message after "--set: ").
ONE_KEY = [
    # Units.
    ('path.bandwidth="10"', f'path.bandwidth = "10": {RATE}'),
    ("path.bandwidth=10", f"path.bandwidth = 10: {RATE}"),
    ("path.bandwidth=1Gb", f'path.bandwidth = "1Gb": {RATE}'),
    ("path.bandwidth=0bit/s", 'path.bandwidth = "0bit/s": a rate above zero'),
    ("path.rtt=67", f"path.rtt = 67: {SPAN}"),
    ("path.rtt=-1ms", f'path.rtt = "-1ms": {SPAN}'),
    ("path.queue=100", f"path.queue = 100: {LIMIT}"),
    ("path.queue=64KB", f'path.queue = "64KB": {LIMIT}'),
    ("path.queue=0 packets", 'path.queue = "0 packets": a queue limit above zero: at least one packet'),
    ("path.queue=1.5 packets", 'path.queue = "1.5 packets": a whole number of packets'),
    (
        "path.policer={ rate = '10Mbit/s', burst = '1499B' }",
        'path.policer.burst = "1499B": at least a packet of the MTU (1500B): a larger one never passes',
    ),
    (
        "path.reverse.policer={ rate = '10Mbit/s', burst = '100B' }",
        'path.reverse.policer.burst = "100B": at least a packet of the MTU (1500B): a larger one never passes',
    ),
    ("path.policer={ rate = '0bit/s', burst = '8KiB' }", 'path.policer.rate = "0bit/s": a rate above zero'),
    ("path.policer={ rate = '1Mbit/s', burst = '2TiB' }", 'path.policer.burst = "2TiB": at most 1TiB'),
    ("path.policer={ rate = '1Mbit/s' }", "path.policer.burst: missing; this key is required"),
    ("path.queue=100B", 'path.queue = "100B": room for at least one packet of the MTU (1500B)'),
    ("path.mtu=1500", 'path.mtu = 1500: a size with a unit from 68B to 65535B, such as "1500B"'),
    ("path.mtu=67B", 'path.mtu = "67B": a size from 68B to 65535B, such as "1500B" or "9000B"'),
    ("path.mtu=64KiB", 'path.mtu = "64KiB": a size from 68B to 65535B, such as "1500B" or "9000B"'),
    (
        "path.access=fast",
        'path.access = "fast": a rate such as "10Gbit/s", a multiple of the path\'s rate such as "4x", or "none"',
    ),
    # Probabilities.
    ("path.loss=2", f"path.loss = 2: {PROBABILITY}"),
    ("path.loss=-0.1", f"path.loss = -0.1: {PROBABILITY}"),
    ("path.loss=nan", f"path.loss = nan: {PROBABILITY}"),
    ("path.loss=inf", f"path.loss = inf: {PROBABILITY}"),
    ("path.loss=1e-13", "path.loss = 1e-13: 0, or a probability of at least 1e-12"),
    ("path.loss=1e999999999", f"path.loss = 1e999999999: {PROBABILITY}"),
    ("path.loss=1e-400", f"path.loss = 1e-400: {PROBABILITY}"),
    ('path.loss="1e-999999999"', f'path.loss = "1e-999999999": {PROBABILITY}'),
    ("path.loss={ every = 0 }", "path.loss.every = 0: a whole number from 1 to 18446744073709551615"),
    (
        "path.loss={ packets = [3, 2] }",
        "path.loss.packets = [3, 2]: packet numbers in strictly ascending order, such as [100, 101, 500]",
    ),
    (
        "path.loss={ good_to_bad = 0.1, bad_to_good = 0 }",
        "path.loss.bad_to_good = 0: a probability above 0: with 0 the link never leaves the bad state",
    ),
    ("path.loss={ good_to_bad = 0.1 }", "path.loss.bad_to_good: missing; this key is required"),
    (
        "path.loss={ evry = 10 }",
        "path.loss = { evry = 10 }: a probability such as 1e-4, or a table with probability, good_to_bad and "
        "bad_to_good, run and begins, every, bit_error_rate, or packets",
    ),
    (
        "path.queue={ discipline = 'rde' }",
        'path.queue.discipline = "rde": one of "droptail", "red", "codel", "fq_codel"',
    ),
    (
        "path.queue={ discipline = 'red', limit = '1MB', max = '2MB' }",
        'path.queue = { discipline = "red", limit = "1MB", max = "2MB" }: min < max <= limit; '
        "here they are 666666B, 2000000B and 1000000B",
    ),
    # Unknown names.
    ("path.los=0.1", 'path.los = 0.1: unknown key; did you mean "loss"?'),
    ("pth.loss=0.1", 'pth.loss = 0.1: unknown key; did you mean "path"?'),
    ("flow.backup.windw=8MB", 'flow.backup.windw = "8MB": unknown key; did you mean "window"?'),
    ("flow.backpu.window=8MB", 'flow.backpu.window = "8MB": unknown flow or key of a flow; did you mean "backup"?'),
    ("flow.3.window=8MB", 'flow.3.window = "8MB": a flow from 0 to 0'),
    (
        "flow.congestion_control=cubix",
        'flow.backup.congestion_control = "cubix": unknown congestion control; did you mean "cubic"? '
        '(or a C file, such as "./mine.c")',
    ),
    (
        "flow.congestion_control={ name = 'storage_friendly', reducton = '1/8' }",
        'flow.backup.congestion_control.reducton = "1/8": unknown parameter of storage_friendly; '
        'did you mean "reduction"?',
    ),
    ("background.x.rate=1Mbit/s", 'background.x.rate = "1Mbit/s": a key of this scenario; it has no [[background]]'),
    # Impossible values.
    ("run.duration=0s", 'run.duration = "0s": a time above zero'),
    ("run.repetitions=0", "run.repetitions = 0: a whole number from 1 to 100000"),
    ("run.repetitions=true", "run.repetitions = true: a whole number from 1 to 100000"),
    ("run.seed=-1", "run.seed = -1: a whole number from 0 to 18446744073709551615"),
    ("run.stop_when_done=1", "run.stop_when_done = 1: true or false"),
    ("run=3", 'run = 3: a table, such as { key = "value" }'),
    ("flow.start=10s", 'flow.backup.start = "10s": every connection opened before the end of the run (run.duration)'),
    ("flow.stop=0s", 'flow.backup.stop = "0s": a time after the start of the last connection'),
    ("flow.transport=quic", 'flow.backup.transport = "quic": one of "tcp", "udt4", "udt-2003"'),
    ("flow.window=8M", 'flow.backup.window = "8M": "auto", or a size with a unit such as "8MB" or "64KiB"'),
    (
        "flow.window=2GB",
        'flow.backup.window = "2GB": "auto", or a size from 1B to 1073725440B, '
        "the largest that TCP can express (RFC 7323)",
    ),
    ("flow.window_scale=15", "flow.backup.window_scale = 15: a whole number from 0 to 14"),
    ("flow.mtu=9000B", 'flow.backup.mtu = "9000B": at most 1500B, the smallest MTU on the route'),
    ("flow.recovery=tahoe", 'flow.backup.recovery = "tahoe": one of "reno", "newreno", "sack", "rack"'),
    (
        "flow.lost_retransmissions=never",
        'flow.backup.lost_retransmissions = "never": "era", as only recovery = "sack" has others',
    ),
    (
        "flow.receive_buffers=linux-6.15",
        'flow.backup.receive_buffers = "linux-6.15": "linux-6.16", as only receive_autotuning = true has others',
    ),
    ("flow.receive_buffers=6.1", 'flow.backup.receive_buffers = 6.1: one of "linux-6.16", "linux-6.15"'),
    ("flow.count=bytes", 'flow.backup.count = "bytes": one of "segments", "acks"'),
    ("flow.rto_max=100ms", 'flow.backup.rto_max = "100ms": a time not below rto_min'),
    ("flow.connections=0", "flow.backup.connections = 0: a whole number from 1 to 100000"),
    ("flow.from=left", 'flow.backup.from = "left": absent: with [path], direction says where it goes'),
    (
        "flow.name=a b",
        'flow.a b.name = "a b": a name without spaces, dots, quotes or "*", and not only digits, such as "backup"',
    ),
    ("measure.warmup=10s", 'measure.warmup = "10s": a time before the end of the run (run.duration)'),
    ("measure.series=true", 'measure.series = true: a time such as "10ms", or false'),
    ("measure.pcap_node=middle", 'measure.pcap_node = "middle": unknown node; known: left, right'),
    ("path.emulator=mahimahi", 'path.emulator = "mahimahi": "elephan" or "netem"'),
    # Workloads.
    (
        "flow.workload=bluk",
        'flow.backup.workload = "bluk": one of "bulk", "constant_rate", "replicate", "copy", "program", '
        '"iscsi", "fc", "fcp", "short_flows"',
    ),
    ("flow.workload=copy", 'flow.backup.workload = "copy": a table; it also needs size'),
    (
        "flow.workload={ kind = 'copy', size = '2kB', max = '1kB' }",
        'flow.backup.workload.max = "1kB": a size not below size',
    ),
    (
        "flow.workload={ kind = 'copy', size = '2kB', jobs = 3 }",
        'flow.backup.workload.every: the time between two jobs, such as "2h"',
    ),
    (
        "flow.workload={ kind = 'copy', size = '2kB', every = '1h' }",
        "flow.backup.workload.jobs: a number above 1, as every says how often; or every absent",
    ),
    (
        "flow.workload={ kind = 'copy', size = '2kB', hash = '1GB/s' }",
        'flow.backup.workload.hash = "1GB/s": absent: without changed below 1 the receiver hashes nothing that it has',
    ),
    (
        "flow.workload={ kind = 'copy', files = 1000000, size = '100TB' }",
        "flow.backup.workload.files = 1000000: files of less than 2^62 B together",
    ),
    ("flow.workload=constant_rate", 'flow.backup.workload = "constant_rate": a table; it also needs load'),
    (
        "flow.workload={ kind = 'constant_rate', load = '0%' }",
        'flow.backup.workload.load = "0%": a share of the line such as "90%" or 0.9, or a rate such as "900Mbit/s" '
        'or "180MB/s"; '
        "a share is above 0 and at most 10 (ten times the line)",
    ),
    (
        "flow.workload={ kind = 'bulk', bytes = '1GB', duration = '1s' }",
        'flow.backup.workload.duration = "1s": either bytes or duration, not both',
    ),
    (
        "flow.workload={ kind = 'replicate', trace = 'x', time_scale = 0 }",
        "flow.backup.workload.time_scale = 0: a number above 0 and at most 1000000, such as 4.5",
    ),
    ("flow.distribution=round_robin", 'flow.backup.distribution = "round_robin": one of "striped", "each"'),
    (
        "flow.workload={ kind = 'replicate' }",
        'flow.backup.workload = { kind = "replicate" }: trace (a file), or rate (such as "180MB/s")',
    ),
    (
        "flow.workload={ kind = 'replicate', trace = 'x', rate = '1MB/s' }",
        'flow.backup.workload.rate = "1MB/s": absent, because trace says when writes come; '
        "time_scale changes their rate",
    ),
    (
        "flow.workload={ kind = 'replicate', rate = '1MB/s', loop = true }",
        "flow.backup.workload.loop = true: absent: it goes with trace",
    ),
    (
        "flow.workload={ kind = 'replicate', rate = '1MB/s', size = { mix = { 4KiB = 0.5 } } }",
        "flow.backup.workload.size.mix.4KiB = 0.5: a whole number from 1 to 1000000",
    ),
    (
        "flow.workload={ kind = 'replicate', rate = '1MB/s', size = { min = '4KiB', max = '4KiB' } }",
        'flow.backup.workload.size.max = "4KiB": a size above min',
    ),
    (
        "flow.workload={ kind = 'replicate', rate = '1MB/s', arrivals = { process = 'on_off', pareto_shape = 1 } }",
        "flow.backup.workload.arrivals.pareto_shape = 1: a number above 1: with a heavier tail there is no mean time",
    ),
    (
        "flow.workload={ kind = 'replicate', rate = '1MB/s', arrivals = 'bursts' }",
        'flow.backup.workload.arrivals = "bursts": one of "constant", "poisson", "on_off"',
    ),
    # Sweeps.
    ("sweep.path.loss=[]", "sweep.path.loss = []: at least one value"),
    ("sweep.path.loss=[0, 3]", f"path.loss = 3: {PROBABILITY}"),
    ("sweep.path.los=[0, 3]", 'path.los = 0: unknown key; did you mean "loss"?'),
    (
        "sweep.flow.bckup.congestion_control=['reno']",
        'sweep.flow.bckup.congestion_control = "reno": unknown flow or key of a flow; did you mean "backup"?',
    ),
    ("sweep.mode=each", 'sweep.mode = "each": one of "grid", "zip"'),
    (
        "sweep.path.loss={ from = 1e-6, to = 1e-2 }",
        "sweep.path.loss = { from = 1e-6, to = 0.01 }: a range with from, to and exactly one of step, factor and count",
    ),
    (
        "sweep.path.loss={ from = 1e-6, to = 1e-2, factor = 0.1 }",
        "sweep.path.loss.factor = 0.1: a factor that leads from `from` to `to`, both above zero",
    ),
    (
        "sweep.path.rtt={ from = '1ms', to = '1MB', step = '1ms' }",
        'sweep.path.rtt.to = "1MB": a unit that goes with that of from ("ms")',
    ),
    (
        "sweep.path.loss={ from = 1e-400, to = 1, factor = 10 }",
        'sweep.path.loss.from = 1e-400: a number, or a quantity such as "10ms"',
    ),
]


@pytest.mark.parametrize(("override", "message"), ONE_KEY, ids=[override for override, _ in ONE_KEY])
def test_one_wrong_key(scenario: Load, override: str, message: str) -> None:
    with pytest.raises(ScenarioError) as error:
        scenario(BASE, override)
    assert told(error.value) == message


def told(error: ScenarioError) -> str:
    """The message without file and line, or without the option."""
    return re.sub(r"^(--set|.*?demo\.toml(:\d+)?): ", "", str(error))


# (text of the file, its replacement, the message after the folder).
IN_FILE = [
    ('rtt = "67ms"', 'rtt = "67"', f'demo.toml:6: path.rtt = "67": {SPAN}'),
    ('rtt = "67ms"', "", "demo.toml:4: path.rtt: missing; this key is required"),
    ('rtt = "67ms"', 'rrt = "67ms"', 'demo.toml:6: path.rrt = "67ms": unknown key; did you mean "rtt"?'),
    ('name = "backup"', 'queue = "1bdp"', 'demo.toml:9: flow.flow1.queue = "1bdp": unknown key;'),
    ('[[flow]]\nname = "backup"', "", "demo.toml: flow: at least one [[flow]] or [[background]]"),
    ('[[flow]]\nname = "backup"', "flow = 3", "demo.toml:8: path.flow = 3: unknown key;"),
    (
        'name = "backup"',
        'name = "a"\n[[flow]]\nname = "a"',
        'demo.toml:11: flow.a.name = "a": "a" is the name of flow number 1 already; a name that is not taken',
    ),
    (
        'name = "backup"',
        'window = "100kB"\nwindow_scaling = false',
        'demo.toml:9: flow.flow1.window = "100kB": at most 65535B, because window_scaling is false',
    ),
    (
        'name = "backup"',
        'window = "100kB"\nwindow_scale = 0',
        'demo.toml:9: flow.flow1.window = "100kB": at most 65535B, because window_scale is 0',
    ),
    (
        'name = "backup"',
        '[flow.workload]\nkind = "constant_rate"\nload = 0',
        "demo.toml:11: flow.flow1.workload.load = 0: a share of the line",
    ),
    (
        'name = "backup"',
        '[defaults]\nwindow = "8M"',
        'demo.toml:10: defaults.window = "8M": "auto", or a size with a unit such as "8MB" or "64KiB"',
    ),
    (
        'name = "backup"',
        '[defaults]\ncongestion_control = "cubix"',
        'demo.toml:10: defaults.congestion_control = "cubix": unknown congestion control; did you mean "cubic"?',
    ),
    (
        'name = "backup"',
        '[sweep]\n"path.loss" = [0,\n 2]',
        f"demo.toml:10: path.loss = 2: {PROBABILITY}",
    ),
    ('name = "backup"', "[sweep]\npath.loss = 3", "demo.toml:10: sweep.path.loss = 3: a list of values, or a range"),
    ('name = "backup"', "name = backup", "demo.toml: not TOML: Invalid value (at line 9, column 8)"),
    ('name = "backup"', "connections = 3\nstagger = '5s'", 'demo.toml:10: flow.flow1.stagger = "5s": every connection'),
    ('name = "backup"', "[[event]]\nat = '1s'", 'demo.toml:9: event.0 = { at = "1s" }: at least one change: bandwidth'),
    ('name = "backup"', "[[event]]\nloss = 0", "demo.toml:9: event.0 = { loss = 0 }: exactly one of at and when"),
    (
        'name = "backup"',
        "[[event]]\nat = '10s'\nloss = 0",
        'demo.toml:10: event.0.at = "10s": a time before the end of',
    ),
    (
        'name = "backup"',
        "[[event]]\nat = '1s'\nlink_down = 'lin'",
        'demo.toml:11: event.0.link_down = "lin": unknown link; known: path, path.forward, path.reverse',
    ),
    (
        'name = "backup"',
        "[[event]]\nat = '1s'\nbackground_on = 'web'",
        'demo.toml:11: event.0.background_on = "web": unknown background source; there is none',
    ),
    (
        'name = "backup"',
        "connections = 2\n[[event]]\nwhen = { flow = 'flow1', reaches = '1Mbit/s' }\nloss = 0",
        'demo.toml:11: event.0.when.flow = "flow1": one of its connections, such as "flow1.1"',
    ),
    (
        'name = "backup"',
        "[[background]]\nrate = '1Mbit/s'\non = '1s'",
        'demo.toml:11: background.background1.on = "1s": both on and off, or neither',
    ),
]


@pytest.mark.parametrize(("old", "new", "message"), IN_FILE, ids=[new for _, new, _ in IN_FILE])
def test_one_wrong_line(scenario: Load, old: str, new: str, message: str) -> None:
    with pytest.raises(ScenarioError) as error:
        scenario(BASE.replace(old, new))
    assert "demo.toml" in str(error.value)
    assert str(error.value)[str(error.value).index("demo.toml") :].startswith(message)


#: (override, message) on the long form.
IN_NETWORK = [
    ("flow.to=e", 'flow.one.to = "e": unknown node; known: a, b, c, d'),
    ("flow.to=a", 'flow.one.to = "a": another node than from'),
    ("link.a-b.to=bb", 'link.a-bb.to = "bb": unknown node; did you mean "b"?'),
    ("link.a-b.to=a", 'link.a-a.to = "a": another node than from'),
    ("flow.direction=reverse", 'flow.one.direction = "reverse": absent: with [[link]], from and to say where it goes'),
    ("flow.route=['a', 'd']", 'flow.one.route = ["a", "d"]: links that exist; none goes from "a" to "d"'),
    ("flow.route=['a', 'b']", 'flow.one.route = ["a", "b"]: a route from "a" to "d"'),
    ("flow.route=['a', 'x', 'd']", 'flow.one.route = ["a", "x", "d"]: unknown node or link; known: '),
    ("link.*.duplex=false", 'flow.one.from = "a": links from "d" to "a"; there is no route'),
]


@pytest.mark.parametrize(("override", "message"), IN_NETWORK, ids=[override for override, _ in IN_NETWORK])
def test_one_wrong_key_in_a_network(scenario: Load, override: str, message: str) -> None:
    text = (
        NETWORK
        if "duplex" not in override
        else NETWORK.replace('reverse = { delay = "40ms", bandwidth = "10Mbit/s" }', "")
    )
    with pytest.raises(ScenarioError) as error:
        scenario(text, override)
    assert told(error.value).startswith(message)


def test_an_event_must_say_which_of_several_links(scenario: Load) -> None:
    with pytest.raises(ScenarioError, match=r"demo.toml:37: event.0.link: missing; which link is to change\?"):
        scenario(NETWORK + "[[event]]\nat = '1s'\nbandwidth = '1Mbit/s'\n")


def test_the_first_problem_in_the_file_is_the_one_that_is_told(scenario: Load) -> None:
    text = BASE.replace('"10s"', '"10"').replace('"67ms"', '"67"')
    with pytest.raises(ScenarioError, match=r"demo.toml:2: run.duration"):
        scenario(text)


def test_the_parts_of_an_error_can_be_had(scenario: Load) -> None:
    with pytest.raises(ScenarioError) as error:
        scenario(BASE.replace('"67ms"', '"67"'))
    assert Path(error.value.file).name == "demo.toml"
    assert (error.value.key, error.value.value, error.value.line) == ("path.rtt", "67", 6)
    assert error.value.expected == SPAN
    assert isinstance(error.value, InputError)


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"none\.toml: cannot be read: No such file or directory"):
        load(tmp_path / "none.toml")
    (tmp_path / "latin.toml").write_bytes(b'title = "\xe9"')
    with pytest.raises(ScenarioError, match=r"latin\.toml: not UTF-8, as TOML must be"):
        load(tmp_path / "latin.toml")


def test_an_override_needs_an_equals_sign(scenario: Load) -> None:
    with pytest.raises(ScenarioError, match=re.escape('--set: "path.loss" is not of the form key=value')):
        scenario(BASE, "path.loss")


def test_a_trace_that_is_not_there_or_does_not_parse(scenario: Load, tmp_path: Path) -> None:
    workload = "flow.workload={ kind = 'replicate', trace = 'x.trace' }"
    with pytest.raises(
        ScenarioError, match=r"workload.trace = \"x.trace\": a trace file that can be read; .*No such file"
    ):
        scenario(BASE, workload)
    (tmp_path / "x.trace").write_text("1000 0 8 16 0\n2000 0 8 sixteen 0\n")
    with pytest.raises(
        ScenarioError, match=r"workload.trace = \"x.trace\": a trace that parses; .*x\.trace, line 2: "
    ) as error:
        scenario(BASE, workload)
    assert "\n" not in str(error.value)


def test_a_cc_of_ones_own_that_is_not_there_or_does_not_compile(scenario: Load, tmp_path: Path) -> None:
    with pytest.raises(
        ScenarioError, match=r"congestion_control = \"./mine.c\": a C file that can be read; .*No such file"
    ):
        scenario(BASE, "flow.congestion_control=./mine.c")
    (tmp_path / "mine.c").write_text('#include "cc.h"\nthis is not C\n')
    with pytest.raises(
        ScenarioError, match=r"congestion_control = \"./mine.c\": a congestion control that compiles"
    ) as error:
        scenario(BASE, "flow.congestion_control=./mine.c")
    assert "mine.c:2" in str(error.value), "the compiler's own words"


def test_a_trace_must_have_something_to_mirror(scenario: Load, tmp_path: Path) -> None:
    workload = "flow.workload={ kind = 'replicate', trace = 'x.trace', loop = true }"
    (tmp_path / "x.trace").write_text("1000 0 8 16 1\n")
    with pytest.raises(ScenarioError, match="a trace with writes; this one only reads"):
        scenario(BASE, workload)
    (tmp_path / "x.trace").write_text("1000 0 8 160 0\n1000 0 8 160 0\n")
    with pytest.raises(ScenarioError, match="a trace that lasts some time, because loop is true"):
        scenario(BASE, workload)


#: (parameters of a congestion control, the message after the key).
CC_PARAMETERS = [
    ("{ name = 'storage_friendly', reduction = 1 }", "reduction = 1: a number from 0.001 to 9/10"),
    ("{ name = 'storage_friendly', reduction = 'x' }", 'reduction = "x": a number from 0.001 to 9/10'),
    ("{ name = 'storage_friendly', congestion_avoidance = 2 }", "congestion_avoidance = 2: true or false: "),
    (
        "{ name = 'cubic', hystart_low_window = 2.5 }",
        "hystart_low_window = 2.5: a whole number from 2 to 1000000 segments",
    ),
    ("{ name = 'cubic', hystart_ack_delta = '2s' }", 'hystart_ack_delta = "2s": a whole number from 1 to 1000000 us'),
    ("{ name = 'cubic', hystart = '+' }", 'hystart = "+": one of "off", "classic", "++": leave slow start'),
    ("{ name = 'cubic', variant = 2.2 }", 'variant = 2.2: one of "2.3", "2.1": growth as of this version'),
    ("{ name = 'bic', variant = '2.6' }", 'variant = "2.6": one of "published", "linux", "linux-2.6.22": growth and'),
    ("{ name = 'bic', beta = -1 }", "beta = -1: a number from 1/2 to 0.9902"),
    ("{ name = 'cubic', variant = true }", 'variant = true: one of "2.3", "2.1": '),
    ("{ name = 'reno', beta = 1 }", "beta = 1: unknown parameter of reno; there is none"),
    ("{ name = 'cubic', beta = [] }", 'beta = []: a number, a fraction such as "1/8", or true or false'),
    ("{ reduction = 1 }", 'name: a name such as "cubic" or "./mine.c"'),
]


@pytest.mark.parametrize(("cc", "message"), CC_PARAMETERS, ids=[cc for cc, _ in CC_PARAMETERS])
def test_wrong_parameters_of_a_cc(scenario: Load, cc: str, message: str) -> None:
    with pytest.raises(ScenarioError) as error:
        scenario(BASE, f"flow.congestion_control={cc}")
    assert told(error.value).startswith(f"flow.backup.congestion_control.{message}")


# Values of a right form that are beyond the limits of the core or the network.
TOO_LARGE = [
    ("path.bandwidth=5000000Tbit/s", "at most 4611686Tbit/s"),
    ("path.access=9999999Tbit/s", "at most 4611686Tbit/s"),
    ("path.queue=99999999999999999999 packets", "at most 2251799813685248B"),
    ("path.queue=999999999999bdp", "at most 2251799813685248B"),
    ("path.jitter=2h", "at most 1h"),
    ("path.queue={ discipline = 'fq_codel', quantum = '5GB' }", "at most 4294967295B"),
    ("path.queue={ discipline = 'red', weight_shift = 21 }", "a whole number from 1 to 20"),
]


@pytest.mark.parametrize(("override", "expected"), TOO_LARGE, ids=[override for override, _ in TOO_LARGE])
def test_too_large_for_the_core(scenario: Load, override: str, expected: str) -> None:
    with pytest.raises(ScenarioError) as error:
        scenario(BASE, "path.bandwidth=400Gbit/s", "path.rtt=1s", override)
    assert f": {expected}" in told(error.value)
