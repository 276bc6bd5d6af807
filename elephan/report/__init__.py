"""Reports of records: tables, figures and HTML pages, and the statistics behind them.

**Invariant: a report comes from records and their series alone; it knows no backend and runs nothing.**
"""
