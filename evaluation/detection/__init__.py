"""How well the manager of a hybrid network tells elephants from mice, by sampling and by memory."""
