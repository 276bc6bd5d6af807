"""Judge the advice by regret: against the best of an exhaustive search on the true path."""
