"""The rules, one file an area, and the clauses that have none."""
