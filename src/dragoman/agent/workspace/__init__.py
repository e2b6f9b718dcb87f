"""Where the tools of a session work: its directories, and the ways to its files and commands."""
