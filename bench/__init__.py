"""The cost of dragoman, beside its peers: `python -m bench` measures and prints one table.

Every measure runs its contenders in turns, round after round, so that a busy minute of the machine hits all
of them; medians are compared, and the spread is shown. A target that is missed is shown as missed and fails nothing.
"""
