"""Signals: tkc ends at once, with 128 and the signal's number, and leaves nothing behind, also where it is killed.

usage: check_signals.py TKC
"""

import os
import pathlib
import pty
import signal
import subprocess
import sys
import tempfile
import time

TKC = str(pathlib.Path(sys.argv[1]).resolve())
# Takes NVRTC and the host's compiler seconds.
SLOW = "kernel slow(x: f32[N]) -> (y: f32[N]) {\n" + "".join(
    f"  let a{k}[i] = sin({'x' if k == 0 else f'a{k - 1}'}[i]) * cos(x[i] + {k})\n" for k in range(150)) + "  y[i] = a149[i]\n}\n"
LOOP = "kernel loop(x: f32[N], M: i64) -> (y: f32[N]) {\n  y[i] = sum[k in 0..M](sin(x[i] + k))\n}\n"
wrong = []


def expect(condition, what):
    if not condition:
        wrong.append(what)


def wait_for(condition, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return False


class Started:
    """A tkc with a folder for its temporary files."""

    def __init__(self, folder, *arguments, **options):
        self.temporary = folder / "tmp"
        self.temporary.mkdir(exist_ok=True)
        environment = os.environ | {"TMPDIR": str(self.temporary), "TK_CACHE": "off"}
        self.process = subprocess.Popen([TKC, *map(str, arguments)], cwd=folder, env=environment,
                                        stdout=subprocess.DEVNULL, **({"stderr": subprocess.PIPE} | options))

    def end(self, number):
        """Sends a signal; the status and how long that took."""
        begin = time.monotonic()
        self.process.send_signal(number)
        try:
            self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
        return self.process.wait(), time.monotonic() - begin

    def left(self):
        return os.listdir(self.temporary)


def emulator(folder):
    """While the host's compiler runs, in a folder of its own."""
    (folder / "slow.tk").write_text(SLOW)
    for number, status in ((signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)):
        started = Started(folder, "run", "slow.tk", "--target", "emu", "--dim", "N=3000")
        expect(wait_for(lambda s=started: any("tk-emu" in name for name in s.left()), 60), "no folder of the emulator")
        got, seconds = started.end(number)
        expect(got == status and seconds < 1, f"{number.name} in the emulator: status {got} after {seconds:.2f} s")
        expect(wait_for(lambda s=started: not s.left(), 15), f"{number.name} in the emulator leaves {started.left()}")


def killed_at_once(folder):
    """Killed as soon as its folder is there."""
    (folder / "slow.tk").write_text(SLOW)
    for _ in range(10):
        started = Started(folder, "run", "slow.tk", "--target", "emu", "--dim", "N=3000")
        while not started.left() and started.process.poll() is None:
            pass
        started.process.kill()
        started.process.wait()
        if not wait_for(lambda s=started: not s.left(), 15):
            expect(False, f"SIGKILL at once leaves {started.left()}")
            return


def nvrtc(folder):
    doctor = subprocess.run([TKC, "doctor"], capture_output=True, text=True, check=False).stdout
    if "nvrtc      none" in doctor:
        print("not run: NVRTC (there is none)")
        return
    (folder / "slow.tk").write_text(SLOW)
    for delay in (0, 0.05, 0.3):
        started = Started(folder, "build", "slow.tk", "--target", "sm_90a", "-o", "slow.cubin")
        libraries = pathlib.Path(f"/proc/{started.process.pid}/maps")
        expect(wait_for(lambda p=libraries: "libnvrtc-builtins" in p.read_text(), 60), "NVRTC is not loaded")
        time.sleep(delay)
        got, seconds = started.end(signal.SIGINT)
        expect(got == 130 and seconds < 1, f"SIGINT in NVRTC after {delay} s: status {got} after {seconds:.2f} s")
        left = [name for name in os.listdir(folder) if name not in ("slow.tk", "tmp")] + started.left()
        expect(not left, f"SIGINT in NVRTC leaves {left}")


def long_runs(folder):
    """On a terminal what goes on is shown after two seconds; an interrupt is answered within one."""
    (folder / "loop.tk").write_text(LOOP)
    leader, follower = pty.openpty()
    started = Started(folder, "run", "loop.tk", "--target", "cpu", "--dim", "N=2", "--arg", f"M={10**12}", stderr=follower)
    os.close(follower)
    time.sleep(3.5)
    shown = os.read(leader, 10000)
    expect(b"running on cpu, " in shown, f"no progress: {shown}")
    got, seconds = started.end(signal.SIGINT)
    expect(got == 130 and seconds < 1, f"SIGINT in a long loop: status {got} after {seconds:.2f} s")
    try:
        shown = os.read(leader, 10000)
    except OSError:
        shown = b"\x1b[K"  # read before
    expect(shown.endswith(b"\x1b[K"), f"the line stays: {shown}")
    os.close(leader)
    started = Started(folder, "run", "loop.tk", "--target", "cpu", "--dim", "N=2", "--arg", f"M={10**12}")
    time.sleep(2.5)
    started.end(signal.SIGTERM)
    expect(started.process.stderr.read() == b"", "progress where there is no terminal")


def ignored(folder):
    """A caller that ignores SIGINT (nohup, a shell's background) has it ignored."""
    (folder / "copy.tk").write_text(SLOW)
    started = Started(folder, "run", "copy.tk", "--target", "emu", "--dim", "N=3",
                      preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
    wait_for(lambda: started.left(), 60)
    started.process.send_signal(signal.SIGINT)
    expect(started.process.wait(timeout=120) == 0, "SIGINT that the caller ignores")


def main():
    for test in (emulator, killed_at_once, nvrtc, long_runs, ignored):
        with tempfile.TemporaryDirectory() as name:
            test(pathlib.Path(name))
    print("\n".join(wrong) or "signals end tkc as they should")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
