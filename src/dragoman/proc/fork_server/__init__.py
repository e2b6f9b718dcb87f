"""The fork server: a process that starts our children and leaves none of them behind.

    host ───── line ────── fork server                 one, started with the first child
      │                         │ forks
      └─ one line per child ─ monitor ── child ── …    one for each child

This folder is a separate program, which `proc/supervisor.py` starts as `python -I -S` with the folder on `sys.path`.
Its modules import each other by their bare names, and nothing of dragoman. From the standard library they import only
modules that load fast, so that the program is ready in 15 ms. Descriptor 0 is the line to the host, in the fork server
and in each monitor. The host is the process that uses dragoman.

The fork server does one thing. For each byte on its line, it forks a monitor. The byte brings four descriptors along:
the monitor's line and the stdin, stdout and stderr of its child.

A monitor reads one order from its own line, so that a large order does not delay other starts. An order is four bytes
of length, then fields separated by NUL, which no field can contain. The fields are the working directory, the number
of arguments, the arguments, and `NAME=value` for each variable. The monitor starts the child in a new session. Then

    it reports   started PID | failed STAGE ERRNO     once
                 exited STATUS                        when the child itself has ended
                 end of file                          when no descendant of the child is left
    it obeys     T    SIGTERM to all that are left
                 K    SIGKILL, repeated until none is left
                 end of file                          as K: the host has disconnected or died

Why no process escapes. A monitor is a *subreaper*. If a process forks twice, calls setsid or loses its parent, it
becomes a child of the monitor and not of init. The monitor therefore finds it when all must end, and knows that it
belongs to this child and to no other. The fork server is a subreaper as well. When a monitor is killed, the fork
server adopts its processes and kills them. When both are killed, the kernel kills the started children (PDEATHSIG).
The host's death shows as the end of the line, and through a pidfd, in case a process forked from the host still holds
its end of the line.

Without subreapers (macOS), only the process group of the child is reached.
"""
