"""The pages of monitor, runs and ledger for a browser; nothing here is imported before `elephan web` asks for it."""
