"""Training steps against PyTorch, alternating processes: steps.py LAMINA [PYTHON [ROUNDS]].

Prints median milliseconds a step of both and the ratio (PyTorch / lamina) with its spread."""
import json
import os
import statistics
import subprocess
import sys
import tempfile

lamina = sys.argv[1]
python = sys.argv[2] if len(sys.argv) > 2 else "/usr/bin/python3"
rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 5
peer = os.path.join(os.path.dirname(os.path.abspath(__file__)), "step_torch.py")
CASES = [("mlp", "mlp:widths=4096x3", 128, 12), ("resnet20", "resnet20", 64, 15)]


def ours(model, batch, threads, steps):
    with tempfile.TemporaryDirectory() as folder:
        record = os.path.join(folder, "run.json")
        subprocess.run([lamina, "train", "--model", model, "--data",
                        "synthetic:shape=3x32x32,classes=10,examples=2048,test=64", "--batch", str(batch), "--steps",
                        str(steps), "--threads", str(threads), "--lr", "0.01", "--quiet", "--json", record], check=True)
        return 1000 * json.load(open(record))["measured"]["step_s"]


def theirs(name, batch, threads, steps):
    # OpenBLAS has threads of its own, which torch.set_num_threads does not reach.
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": str(threads), "OMP_NUM_THREADS": str(threads)}
    return float(subprocess.run([python, peer, name, str(batch), str(threads), str(steps)], check=True,
                                capture_output=True, text=True, env=environment).stdout)


for name, model, batch, steps in CASES:
    for threads in (1, 2):
        a, b = [], []
        for _ in range(rounds):
            a.append(ours(model, batch, threads, steps))
            b.append(theirs(name, batch, threads, steps))
        ratios = sorted(y / x for x, y in zip(a, b))
        print(f"{name} batch {batch}, {threads} thread(s): lamina {statistics.median(a):.1f} ms, PyTorch "
              f"{statistics.median(b):.1f} ms, ratio {statistics.median(ratios):.2f} [{ratios[0]:.2f}-{ratios[-1]:.2f}]",
              flush=True)
