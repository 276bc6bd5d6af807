"""What moving a flow to a lightpath costs with each mitigation, over the cells of the hybrid paper; `python -m
evaluation.mitigation`."""
