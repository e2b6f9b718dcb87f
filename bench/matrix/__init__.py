"""The matrix: every agent and client that installs here, judged by `dragoman check`, with the findings."""
