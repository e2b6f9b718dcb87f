"""The matrix: every agent and client that installs here, checked by `dragoman check`, with the findings."""
