"""The steward: a process beside us that starts our children and leaves none of them behind.

    we ─────── line ─────── steward                    one, started with the first child
     │                         │ forks
     └── one line a child ── warden ── child ── …      one for each child

This folder is a program of its own, started by `stewardship.py` as `python -I -S` with the
folder on `sys.path`: its modules import each other by their bare names, nothing of dragoman,
and of the standard library only what costs next to nothing, so that it is up in 15 ms.
Descriptor 0 is the line to us, in the steward and in each warden.

The steward does one thing: for each byte on its line, which brings four descriptors along
(a warden's line and the stdin, stdout and stderr of its child), it forks a warden.

A warden reads one order from its own line, so that a big one holds up nobody else: four
bytes of length, then fields parted by NUL, which no field can contain: the working
directory, the number of arguments, the arguments, and `NAME=value` for each variable.
It starts the child in a session of its own, and from then on

    it says    started PID | failed STAGE ERRNO     once
               exited STATUS                        when the child itself has ended
               end of file                          when nobody is left of all it started
    it obeys   T    SIGTERM to all that is left
               K    SIGKILL, again and again, until nobody is left
               end of file                          as K: we have let go, or are dead

Why nobody escapes. A warden is a *subreaper*: whoever forks twice, calls setsid or loses
its parent becomes the warden's own child instead of init's, and so is found when all have
to go, and is known to belong to this child and to no other. The steward is one too: should
a warden be killed, what it kept falls to the steward, which kills it. Should both be
killed, the kernel kills the started children themselves (PDEATHSIG).
Our death is seen as the end of the line, and by a pidfd in case somebody forked from us
still holds our end.

Where there is no subreaper (macOS), the process group of the child is all that is reached.
"""
