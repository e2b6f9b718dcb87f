"""The fork server: a process beside us that starts our children and leaves none of them behind.

    we ─────── line ────── fork server                 one, started with the first child
     │                         │ forks
     └── one line a child ── monitor ── child ── …     one for each child

This folder is a program of its own, started by `proc/supervisor.py` as `python -I -S` with the
folder on `sys.path`: its modules import each other by their bare names, nothing of dragoman,
and of the standard library only what costs next to nothing, so that it is up in 15 ms.
Descriptor 0 is the line to us, in the fork server and in each monitor. We are its host.

The fork server does one thing: for each byte on its line, which brings four descriptors along
(a monitor's line and the stdin, stdout and stderr of its child), it forks a monitor.

A monitor reads one order from its own line, so that a big order delays no other start: four
bytes of length, then fields parted by NUL, which no field can contain: the working
directory, the number of arguments, the arguments, and `NAME=value` for each variable.
It starts the child in a session of its own, and from then on

    it reports   started PID | failed STAGE ERRNO     once
                 exited STATUS                        when the child itself has ended
                 end of file                          when no descendant of the child is left
    it obeys     T    SIGTERM to all that are left
                 K    SIGKILL, again and again, until none is left
                 end of file                          as K: we have let go, or are dead

Why no process escapes. A monitor is a *subreaper*: a process that forks twice, calls setsid or
loses its parent becomes the monitor's own child instead of init's, and so is found when all have
to go, and is known to belong to this child and to no other. The fork server is a subreaper too:
when a monitor is killed, its processes fall to the fork server, which kills them. When both are
killed, the kernel kills the started children themselves (PDEATHSIG).
Our death is seen as the end of the line, and by a pidfd in case a process forked from us
still holds our end.

Where there is no subreaper (macOS), only the process group of the child is reached.
"""
