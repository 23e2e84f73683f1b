"""Runs a program once and measures it, for the comparisons here."""
import os
import signal
import subprocess
import tempfile
import time


class Run:
    """What one run of a program took and said."""

    def __init__(self, status, wall, processor, peak, output):
        self.status = status  # Its exit status; None after its time.
        self.wall = wall
        self.processor = processor
        self.peak = peak
        self.output = output


def run(line, timeout=None):
    """Runs a command to its end, or to the timeout in seconds."""
    with tempfile.TemporaryFile() as out:
        begun = time.monotonic()
        child = subprocess.Popen(
            line, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, start_new_session=True
        )
        is_late = False
        if timeout is None:
            _, status, usage = os.wait4(child.pid, 0)
        else:
            status = None
            while status is None:
                ended, code, usage = os.wait4(child.pid, os.WNOHANG)
                if ended:
                    status = code
                elif time.monotonic() - begun > timeout:
                    os.killpg(child.pid, signal.SIGKILL)
                    _, status, usage = os.wait4(child.pid, 0)
                    is_late = True
                else:
                    # Long runs are asked seldom: asking costs processor time, of another process.
                    time.sleep(min(0.05, max(0.0002, (time.monotonic() - begun) / 100)))
        wall = time.monotonic() - begun
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        output = out.read(1 << 20).decode(errors="replace")
    # The system splits a short run into user and system time by its clock ticks; only the sum is exact.
    processor = usage.ru_utime + usage.ru_stime
    return Run(None if is_late else child.returncode, wall, processor, usage.ru_maxrss * 1024, output)
