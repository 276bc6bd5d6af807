"""Flows behind a policer: `elephan run` on the simulator beside Linux's own TCP; docs/results/policed.md."""
