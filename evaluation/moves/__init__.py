"""Parts of docs/results/moves.md: moves under today's cubic, beside Linux's TCP, and by the manager."""
