"""The advice on the kernel backend."""
