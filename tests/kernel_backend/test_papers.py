"""The kernel's column of a paper: its values, and its text on claims without one."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from elephan.errors import InputError
from elephan.papers import on_kernel
from elephan.papers.catalogue import find
from elephan.papers.claims import OnKernel, Runs
from elephan.papers.readers import kernel_readers_of
from elephan.sweep.executor import execute
from tests.kernel_backend.conftest import Elephan

SHORT = {
    "flow.recovery": "rack",
    "path.rtt": "80ms",
    "run.duration": "3s",
    "measure.warmup": "1s",
    "flow.window": "1MB",
}


@pytest.mark.usefixtures("kernel", "host_stays_as_it_was")
def test_a_claim_is_measured_over_this_machines_tcp() -> None:
    paper = find("dsan")
    runs = (Runs(file="table1.toml", set=SHORT),)
    claim = paper.claim("dsan.table1").model_copy(update={"kernel": OnKernel(runs=runs, differs="a short run")})
    ((_, jobs),) = on_kernel.jobs(paper, [claim])
    records = [outcome.record for outcome in execute(jobs, workers=1)]
    column = on_kernel.column(paper, [claim], [(claim, records)])
    # 1 MB per 80 ms is 12.5 MB/s; a machine that is busy makes it less, never more.
    measured = column.of("dsan.table1", "rtt_80ms")
    assert measured is not None and 6 < measured < 12.6
    assert column.label == f"Linux {os.uname().release}" and column.lines[0] == "dsan.table1 on the kernel: a short run"
    reference = column.instead_of(paper.reference("kernel-window"))
    assert reference.value == {"rtt_80ms": measured} and reference.label == column.label
    assert column.instead_of(paper.reference("kernel")) == paper.reference("kernel")


def test_a_claim_that_the_kernel_cannot_follow_says_why_in_one_line() -> None:
    paper = find("dsan")
    lines = on_kernel.column(paper, [paper.claim(f"dsan.{name}") for name in ("fig3", "fig9", "ifcp")], []).lines
    assert [line.split(": ")[0] for line in lines] == ["dsan.fig3", "dsan.fig9", "dsan.ifcp"]
    assert all(": not on the kernel: " in line and "\n" not in line for line in lines)
    assert "recovery = " in lines[1] and "no run measures it" in lines[2]


def test_every_claim_with_a_kernel_form_can_be_read() -> None:
    for name in ("dr", "dsan", "iscsi", "tenge"):
        paper = find(name)
        assert {claim.id for claim in paper.claims if claim.kernel is not None} == set(kernel_readers_of(paper))


def test_a_paper_without_any_is_refused_before_anything_runs(elephan: Elephan) -> None:
    with pytest.raises(InputError, match="of tenge there is none"):
        on_kernel.jobs(find("tenge"), find("tenge").claims)
    done = elephan("paper", "run", "dsan", "--claim", "dsan.fig3", "--on", "kernel")
    assert done.returncode == 2 and "of dsan there is dsan.table1, dsan.fig10" in done.stderr


@pytest.mark.usefixtures("host_stays_as_it_was")
def test_ccs_are_ranked_by_what_this_machines_tcp_does(elephan: Elephan, tmp_path: Path) -> None:
    file = tmp_path / "one.toml"
    text = (
        '[run]\nduration = "1s"\n[path]\nbandwidth = "20Mbit/s"\nrtt = "10ms"\n[[flow]]\ncongestion_control = "reno"\n'
    )
    file.write_text(text, encoding="utf-8")
    done = elephan("compare", file, "--cc", "reno", "--on", "kernel", "--json")
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)
    assert row["backend"] == "kernel" and row["neighbour_kept"] == 1.0 and 2e6 < row["goodput_bps"] < 20e6
    file.write_text(text + "limited_transmit = false\n", encoding="utf-8")
    refused = elephan("compare", file, "--cc", "reno", "--on", "sim,kernel")
    assert refused.returncode == 2 and "limited_transmit = false" in refused.stderr and not refused.stdout
