"""Judge the path tests where the truth is known: capacity, available bandwidth, queue depth, policers."""
