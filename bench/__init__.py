"""The cost of dragoman compared with its peers: `python -m bench` measures and prints one table.

Every measure runs its contenders in turns, in several rounds, so that a busy minute of the machine affects all of them.
Medians are compared, and the spread is shown. A missed target is shown as missed and does not fail the run.
"""
