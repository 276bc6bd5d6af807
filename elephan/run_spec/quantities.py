"""Quantities that only some kinds of a specification's parts have. Each function raises `ValueError` for the others."""

from __future__ import annotations

from elephan.run_spec.types import LossSpec, QueueSpec


def loss_rate(loss: LossSpec) -> float:
    """Return the probability that a packet is lost, for a model that draws each packet alike."""
    if loss["kind"] == "none":
        return 0.0
    if loss["kind"] == "independent":
        return loss["probability_e12"] / 1e12
    raise ValueError(f"a loss of kind {loss['kind']} has no one probability")


def limit_bytes(queue: QueueSpec) -> int:
    """Return the limit of a queue that is counted in bytes."""
    if (queue["kind"] == "drop_tail" or queue["kind"] == "red") and queue["limit_bytes"] is not None:
        return queue["limit_bytes"]
    raise ValueError(f"a queue of kind {queue['kind']} has no limit in bytes")


def given(value: int | None) -> int:
    """Return a number that may be null."""
    if value is None:
        raise ValueError("the specification has null there")
    return value
