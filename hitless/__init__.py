"""What moving a flow to a lightpath costs with each remedy, over the cells of the hybrid paper; `python -m hitless`."""
