"""Evaluate the cost of moving a flow to a lightpath with each mitigation, over the cells of the hybrid paper; `python
-m evaluation.mitigation`.
"""
