"""SIGINT during long work: Python raises KeyboardInterrupt, and the process goes on."""
import os
import signal
import subprocess
import sys
import time
import unittest

# Takes NVRTC and the host's compiler seconds.
PROGRAM = """
import os, sys, threading
import tk
text = "kernel slow(x: f32[N]) -> (y: f32[N]) {\\n" + "".join(
    f"  let a{k}[i] = sin({'x' if k == 0 else f'a{k - 1}'}[i]) * cos(x[i] + {k})\\n" for k in range(12)
) + "  y[i] = a11[i]\\n}\\nkernel quick(x: f32[N]) -> (y: f32[N]) { y[i] = x[i] }\\n"
module = tk.compile(text, target="cpu")
threading.Thread(target=threading.Event().wait, daemon=True).start()  # takes signals, too
try:
    module["quick"].text("ptx", "sm_90a")
except tk.Error as error:
    print(error.code)
    sys.exit(0)
text = module["slow"].text("cuda", "sm_90a")
print("ready", flush=True)
try:
    module["slow"].text("ptx", "sm_90a")
    while True:
        pass
except KeyboardInterrupt:
    print("interrupted", flush=True)
assert ".entry" in module["quick"].text("ptx", "sm_90a")
try:
    print("goes on", flush=True)
    while True:
        pass
except KeyboardInterrupt:
    print("interrupted again", flush=True)
"""

# A loop of some seconds in many pieces.
LAUNCH = """
import numpy as np
import tk
text = "kernel loop(x: f32[N], M: i64) -> (y: f32[N]) { y[i] = sum[k in 0..M](sin(x[i] + k)) }"
loop = tk.compile(text, target="cpu")["loop"]
x, y = np.ones(1 << 22, "f4"), np.full(1 << 22, np.nan, "f4")
loop(x, 1, out=y)
y[:] = np.nan
print("ready", flush=True)
try:
    loop(x, 3000, out=y)
    print("done", flush=True)
except KeyboardInterrupt:
    print("interrupted", np.isnan(y).any(), flush=True)
loop(x, 1, out=y)
print(np.isnan(y).any())
"""


class InterruptTest(unittest.TestCase):
    def test_nvrtc(self):
        environment = os.environ | {"TK_CACHE": "off"}
        for delay in (0.02, 0.1, 0.3, 0.6):
            process = subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE, text=True, env=environment)
            said = process.stdout.readline().strip()
            if said != "ready":
                process.wait()
                self.skipTest(f"NVRTC: {said} {process.stderr.read()}")
            time.sleep(delay)
            process.send_signal(signal.SIGINT)
            begin = time.monotonic()
            self.assertEqual(process.stdout.readline().strip(), "interrupted", f"after {delay} s")
            self.assertLess(time.monotonic() - begin, 10)
            self.assertEqual(process.stdout.readline().strip(), "goes on")
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.stdout.readline().strip(), "interrupted again")
            self.assertEqual((process.wait(), process.stderr.read()), (0, ""))

    def test_launch_on_the_cpu(self):
        process = subprocess.Popen([sys.executable, "-c", LAUNCH], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        said = process.stdout.readline().strip()
        if said != "ready":
            self.skipTest(process.stderr.read().strip().splitlines()[-1])  # no NumPy
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        rest, errors = process.communicate(timeout=120)
        self.assertEqual((rest.split(), errors), (["interrupted", "True", "False"], ""))


if __name__ == "__main__":
    unittest.main()
