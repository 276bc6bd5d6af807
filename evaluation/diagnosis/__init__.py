"""`elephan diagnose` judged by flows whose limit is known, over emulated paths."""
