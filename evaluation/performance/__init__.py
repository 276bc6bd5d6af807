"""Speed of the simulator beside its peers and beside the least that any simulator must do."""
