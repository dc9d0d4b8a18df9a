"""End-to-end tests of the lamina program: program.py PROGRAM SUITE. Standard library only."""
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

PROGRAM = sys.argv[1]
DATA = ["--data", "synthetic:shape=1x8x8,classes=4,examples=256,test=64"]
SMALL = ["--model", "mlp:widths=16x1,dropout=0.1", *DATA, "--batch", "32", "--seed", "3", "--quiet"]
failures = []


def check(condition, text):
    if not condition:
        failures.append(text)
        print("FAILED:", text)


def run(*arguments, timeout=120, **keywords):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=timeout, **keywords)


def expect_error(code, words, *arguments, **keywords):
    result = run(*arguments, **keywords)
    line = result.stderr.strip()
    name = " ".join(arguments)
    check(result.returncode == code, f"{name}: exit {result.returncode}, wanted {code}: {line}")
    check(line.count("\n") == 0 and line.startswith("lamina:"), f"{name}: not one line: {line!r}")
    for word in words:
        check(word in line, f"{name}: '{word}' is not in: {line}")


def newest_tensors(folder):
    names = sorted(n for n in os.listdir(folder) if n.endswith(".safetensors") and not n.startswith("."))
    with open(os.path.join(folder, names[-1]), "rb") as file:
        return names[-1], file.read()


def errors(folder):
    train = ["train", *SMALL, "--epochs", "1"]
    expect_error(2, ["--frobnicate"], "train", "--frobnicate")
    expect_error(2, ["resnet9", "known", "resnet8"], "train", "--model", "resnet9", *DATA)
    expect_error(2, ["width", "allowed", "widths"], "train", "--model", "mlp:width=3", *DATA)
    expect_error(2, ["nosuch"], "train", "--data", "nosuch")
    expect_error(2, ["local-greedy", "known", "backprop"], *train, "--strategy", "local-greedy")
    expect_error(2, ["--batch", "at least 1"], *train, "--batch", "0")
    expect_error(2, ["--workers"], *train, "--workers", "2")
    expect_error(2, ["gpu", "known"], *train, "--devices", "gpu")
    expect_error(2, ["f8", "known"], *train, "--dtype", "f8")
    expect_error(2, ["adamz", "known"], *train, "--optimizer", "adamz")
    expect_error(2, ["cosin", "known"], *train, "--lr-schedule", "cosin")
    expect_error(2, ["--resume"], *train, "--resume")
    expect_error(2, ["transformer"], "train", "--model", "transformer", *DATA)
    expect_error(2, [], "train", "--epochs", "x")
    expect_error(2, [], "frobnicate")
    expect_error(1, ["fashion-mnist"], "train", "--data-dir", folder + "/none")
    expect_error(1, [folder], "train", "--data", f"text:{folder}/none")
    expect_error(1, ["loss is"], *train, "--lr", "1e30", "--momentum", "0", "--steps", "50")
    expect_error(1, ["no complete checkpoint"], *train, "--checkpoint", folder, "--resume")
    expect_error(1, [folder], *train, "--json", folder + "/none/run.json")
    expect_error(2, ["there is no op"], "ops", "nosuch")
    check(os.listdir(folder) == [], f"files were left: {os.listdir(folder)}")
    # A truncated and a corrupt data file.
    for name, content in {"cut": b"\x00\x00\x08\x03\x00\x00\x00\x02", "odd": b"\x1f\x8b\x08garbage"}.items():
        data = os.path.join(folder, name)
        os.mkdir(data)
        for part in ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1"):
            with open(os.path.join(data, part + "-ubyte"), "wb") as file:
                file.write(content)
        expect_error(1, ["idx"], "train", "--data", f"idx:{data}")
    for help_of in ([], ["train"], ["eval"], ["report"]):
        check(run(*help_of, "--help").returncode == 0, f"{help_of} --help")


def files(folder):
    paths = {k: os.path.join(folder, k) for k in ("run.json", "trace.json", "report.html", "metrics.jsonl")}
    result = run("train", *SMALL, "--epochs", "2", "--json", paths["run.json"], "--trace", paths["trace.json"],
                 "--report", paths["report.html"], "--metrics", paths["metrics.jsonl"],
                 "--checkpoint", os.path.join(folder, "c"))
    check(result.returncode == 0 and result.stdout + result.stderr == "", f"quiet run: {result}")
    record = json.load(open(paths["run.json"]))
    for key in ("schema", "command", "build", "model", "data", "strategy", "options", "seed", "workers", "devices",
                "steps", "examples", "wall_s", "examples_per_s", "metrics", "history", "flops_total",
                "flops_sequential", "bytes_sent", "per_worker", "predicted", "measured"):
        check(key in record, f"no key {key}")
    worker = record["per_worker"][0]
    parts = sum(worker[k] for k in ("compute_s", "exposed_s", "input_s", "idle_s"))
    check(abs(parts - record["wall_s"]) <= 0.02 * record["wall_s"], f"{parts} s of {record['wall_s']} s")
    check(record["steps"] == 16 and record["flops_total"] > 0, "steps and FLOPs")
    check(len(json.load(open(paths["trace.json"]))["traceEvents"]) > 100, "trace")
    page = open(paths["report.html"]).read()
    check("http://" not in page and "https://" not in page and "<svg" in page, "report")
    check(all(json.loads(line)["step"] > 0 for line in open(paths["metrics.jsonl"])), "metrics")
    evaluation = run("eval", "--checkpoint", os.path.join(folder, "c"), "--json", os.path.join(folder, "eval.json"))
    loss = json.load(open(os.path.join(folder, "eval.json")))["metrics"]["test_loss"]
    check(loss == record["metrics"]["test_loss"], f"eval gives {loss}: {evaluation.stdout}{evaluation.stderr}")
    both = os.path.join(folder, "both.html")
    check(run("report", paths["run.json"], paths["run.json"], "--out", both).returncode == 0, "report of two")
    expect_error(2, ["model"], "train", *SMALL[2:], "--model", "mlp:widths=8x1", "--checkpoint",
                 os.path.join(folder, "c"), "--resume", "--epochs", "2")
    expect_error(2, ["--new-horizon"], "train", *SMALL, "--checkpoint", os.path.join(folder, "c"), "--resume",
                 "--epochs", "3")


def resume(folder):
    train = ["train", *SMALL, "--steps", "300", "--checkpoint-every", "7", "--optimizer", "adam", "--lr", "0.01"]
    whole = os.path.join(folder, "whole")
    check(run(*train, "--checkpoint", whole).returncode == 0, "uninterrupted run")
    rng = random.Random(1)
    for trial in range(20):
        broken = os.path.join(folder, f"broken{trial}")
        process = subprocess.Popen([PROGRAM, *train, "--checkpoint", broken], stderr=subprocess.DEVNULL)
        # Killed at a random moment, but past the checkpoint of step 0.
        while not (os.path.isdir(broken) and any(n.endswith(".json") for n in os.listdir(broken))):
            time.sleep(0.002)
        time.sleep(rng.uniform(0, 0.4))
        process.send_signal(signal.SIGKILL)
        process.wait()
        result = run(*train, "--checkpoint", broken, "--resume")
        check(result.returncode == 0, f"trial {trial}: {result.stderr}")
        check(newest_tensors(broken) == newest_tensors(whole), f"trial {trial}: other weights")
    # Interrupted: the step is finished, a checkpoint written.
    for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
        stopped = os.path.join(folder, f"stopped{code}")
        process = subprocess.Popen([PROGRAM, *train, "--steps", "1000000", "--checkpoint", stopped],
                                   stderr=subprocess.DEVNULL)
        time.sleep(0.5)
        process.send_signal(number)
        check(process.wait(timeout=30) == code, f"exit after signal {number}: {process.returncode}")


def threads(folder):
    for model in ("mlp:widths=32x2", "resnet8:width=4"):
        weights = set()
        for count in (1, 2, 7):
            target = os.path.join(folder, f"{model[:3]}{count}")
            result = run("train", "--model", model, *DATA, "--batch", "32", "--seed", "3", "--quiet", "--epochs", "1",
                         "--threads", str(count), "--checkpoint", target)
            check(result.returncode == 0, result.stderr)
            weights.add(newest_tensors(target))
        check(len(weights) == 1, f"{model}: weights depend on the number of threads")


with tempfile.TemporaryDirectory() as temporary:
    {"errors": errors, "files": files, "resume": resume, "threads": threads}[sys.argv[2]](temporary)
sys.exit(1 if failures else 0)
