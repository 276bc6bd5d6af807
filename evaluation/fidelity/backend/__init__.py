"""The kernel backend beside the simulator: the same specifications over this machine's own TCP, measured once and kept.

A run of this backend takes its duration, so `make backend` measures what measured.jsonl lacks and `make fidelity` sets
the simulator beside what is there.
"""
