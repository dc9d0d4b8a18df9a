"""End-to-end tests of the lamina program: program.py PROGRAM SUITE. Standard library only."""
import fcntl
import gzip
import json
import os
import random
import re
import resource
import shutil
import signal
import stat
import struct
import subprocess
import sys
import tempfile
import time

PROGRAM = os.path.abspath(sys.argv[1])
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
    return line


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
    expect_error(2, ["frobnicate", "known", "train"], "frobnicate")
    expect_error(2, ["known", "train"])
    expect_error(1, ["fashion-mnist"], "train", "--data-dir", folder + "/none")
    expect_error(1, [folder], "train", "--data", f"text:{folder}/none")
    expect_error(1, ["loss is"], "train", *SMALL, "--lr", "1e30", "--momentum", "0", "--steps", "50")
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
    # Splits that do not fit each other, records that are none.
    odd = os.path.join(folder, "splits")
    os.mkdir(odd)
    for part, size in (("train", 4), ("t10k", 5)):
        with open(os.path.join(odd, part + "-images-idx3-ubyte"), "wb") as file:
            file.write(struct.pack(">HBBIII", 0, 8, 3, 8, size, size) + bytes(8 * size * size))
        with open(os.path.join(odd, part + "-labels-idx1-ubyte"), "wb") as file:
            file.write(struct.pack(">HBBI", 0, 8, 1, 8) + bytes(8))
    expect_error(1, ["(1,4,4)", "(1,5,5)", odd], "train", "--data", f"idx:{odd}")
    record = os.path.join(folder, "record.json")
    for text in ("", "{", "[]", "null", '{"schema": 1}', '{"schema": "lamina.run/1", "history": 3}'):
        with open(record, "w") as file:
            file.write(text)
        expect_error(1, [record], "report", record, "--out", os.path.join(folder, "page.html"))


def help_texts(folder):
    """What --help and --version say is what the program does."""
    for command in ([], ["train"], ["eval"], ["report"]):
        check(run(*command, "--help").returncode == 0, f"{command} --help")
    version = run("--version")
    check(version.returncode == 0 and re.fullmatch(r"lamina \d+\.\d+\.\d+.*\n", version.stdout), f"--version: {version}")
    train = run("train", "--help").stdout
    # Every model with its options: each name and default it lists is accepted, and is the default.
    entries = re.findall(r"^  (\w+(?:, \w+)*)\n      ([\w=.,]+)\n", train, re.M)
    names = [name for group, _ in entries for name in group.split(", ")]
    check(names == run("train", "--model", "nosuch", *DATA).stderr.split("known: ")[1].strip().split(", "), f"{names}")
    small = os.path.join(folder, "small.txt")
    with open(small, "w") as file:
        file.write("a text of some words; " * 60)
    listed = re.search(r"synthetic\[:(.*)\]", train).group(1)
    plain = {}
    for group, defaults in entries:
        name = group.split(", ")[0]
        data = f"text:{small}" if name == "transformer" else "synthetic"
        for spec in (name, f"{name}:{defaults}"):
            record = os.path.join(folder, "record.json")
            result = run("train", "--model", spec, "--data", data, "--steps", "0", "--epochs", "0", "--json", record,
                         "--quiet")
            check(result.returncode == 2 and "--steps" in result.stderr, f"both lengths: {result}")
            result = run("train", "--model", spec, "--data", data, "--epochs", "0", "--json", record, "--quiet")
            check(result.returncode == 0, f"{spec}: {result.stderr}")
            plain.setdefault(name, []).append(json.load(open(record))["metrics"])
    check(all(a == b for a, b in plain.values()), f"defaults listed are not those in force: {plain}")
    for key in ("shape=3x32x32", "classes=10", "examples=1024", "test=128"):
        check(key in listed, f"{key} is not in the help of synthetic: {listed}")
    check(run("train", "--model", "mlp:widths=4x1", "--data", f"synthetic:{listed}", "--epochs", "0", "--quiet")
          .returncode == 0, "the defaults of synthetic")
    for schedule in re.findall(r"^  (\w+:warmup=\S+)$", train, re.M):
        check(run("train", *SMALL, "--epochs", "0", "--lr-schedule", schedule).returncode == 0, schedule)
    # The values of an evaluation are the checkpoint's.
    evaluation = run("eval", "--help").stdout
    for flag in ("--model", "--dtype", "--seed", "--context", "=fashion-mnist", "=64"):
        check(flag not in evaluation, f"eval --help has {flag}")


def ignored(folder):
    """A flag or an environment variable that would have no effect is refused, never ignored."""
    train = ["train", *SMALL, "--steps", "1"]
    expect_error(2, ["--dtype"], "eval", "--checkpoint", folder, "--dtype", "f64")
    expect_error(2, ["--model"], "eval", "--checkpoint", folder, "--model", "mlp")
    expect_error(2, ["no use", "/none"], *train, "--data-dir", "/none")
    for flag, value in (("--keep", "3"), ("--checkpoint-every", "3")):
        expect_error(2, [flag, "--checkpoint"], *train, flag, value)
    expect_error(2, ["--momentum", "sgd", "adamw"], *train, "--optimizer", "adamw", "--momentum", "0.5")
    expect_error(2, ["--context", "text"], *train, "--context", "64")
    expect_error(2, ["--epochs", "--steps"], *train, "--epochs", "3")
    none = os.path.join(folder, "none")
    expect_error(2, ["LAMINA_DATA", none], "train", env={**os.environ, "LAMINA_DATA": none})
    for command in (["info"], ["ops"], train):
        expect_error(2, ["LAMINA_ISA", "nonsense", "avx2"], *command, env={**os.environ, "LAMINA_ISA": "nonsense"})


def ops(folder):
    """The support table: every op on every kind of device, and one op's variants."""
    table = run("ops").stdout.splitlines()
    devices = re.findall(r"dtypes on (\w+)", table[0])
    check(devices == ["cpu", "example"], f"devices of the table: {devices}")
    rows = {line.split()[0]: line for line in table[2:]}
    check(len(rows) > 50, f"{len(rows)} ops")
    for op in ("matmul", "gelu", "attention_grad", "batch_norm"):
        check(all(rows[op].count(dtype + " ") >= 2 for dtype in ("f32", "f64", "bf16", "f16")), f"dtypes: {rows[op]}")
    one = run("ops", "gelu").stdout
    for line in (r"gelu\.cpu\.vector\.bf16\.baseline +bf16 +baseline +yes", r"gelu\.cpu\.reference +f32 f64 bf16 f16",
                 r"gelu\.example\.reference +f32 f64 bf16 f16 +yes"):
        check(re.search(line, one), f"'{line}' is not in\n{one}")
    # A sample of 16 bits with statistics in f32 is none of f32.
    check(re.search(r"attention_grad\.cpu\.fused\.bf16\.baseline +bf16 +baseline", run("ops", "attention_grad").stdout),
          "dtypes of attention_grad")


def sizes(folder):
    """Sizes that cannot be: a wrong value is usage, a file that is wrong is not, and what no machine holds is refused
    with bytes needed and available before anything is allocated."""
    expect_error(2, ["option shape", "2^63"], "train", "--model", "mlp", "--data", f"synthetic:shape={2**40}x{2**40}")
    expect_error(2, ["option shape"], "train", "--model", "mlp", "--data", "synthetic:shape=1x1x1x1x1x1x1x1x2")
    text = os.path.join(folder, "text")
    with open(text, "wb") as file:
        file.write(b"0123456789" * 100)
    expect_error(2, ["context", "64", "128"], "train", "--model", "transformer:context=64", "--data", f"text:{text}")
    for content in (b"", b"short"):
        short = os.path.join(folder, "short")
        with open(short, "wb") as file:
            file.write(content)
        expect_error(1, [f"has {len(content)} bytes", "too few"], "train", "--model", "transformer", "--data",
                     f"text:{short}")

    # A process of 1 GiB, so that the machine does not matter. Under a sanitizer none starts.
    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (2**30, 2**30))

    if run("--version", preexec_fn=limit).returncode != 0:
        return

    def limited(code, words, *arguments):
        began = time.monotonic()
        line = expect_error(code, words, *arguments, timeout=60, preexec_fn=limit)
        check(time.monotonic() - began < 20, f"{arguments}: took its time")
        return line

    for arguments in (["--model", "resnet8:width=4096", "--data", "synthetic"],
                      ["--model", "transformer:width=16777216", "--data", f"text:{text}"],
                      ["--model", "mlp:widths=16777216x3", *DATA, "--optimizer", "adam"],
                      ["--model", "mlp:widths=1x1", "--data", f"synthetic:shape={2**31}"]):
        line = limited(1, ["needs at least", "available"], "train", *arguments)
        needed, available = [int(n) for n in re.findall(r"\b(\d+) bytes|available are (\d+)", line) for n in n if n]
        check(needed > 2**30 > available > 2**28, f"{arguments}: {needed} and {available} bytes")
    check(run("train", *SMALL, "--model", "mlp:widths=1x1", "--data", f"synthetic:shape=4,classes=4,examples={2**40},test=4",
              "--steps", "2").returncode == 0, "a large set that needs no memory")
    bomb = os.path.join(folder, "bomb.gz")
    with gzip.open(bomb, "wb", compresslevel=1) as file:
        for _ in range(64):
            file.write(bytes(2**24))
    line = limited(1, [bomb, "unpacks to more than", "bytes allowed"], "train", "--model", "transformer", "--data",
                   f"text:{bomb}")
    check(2**27 < int(re.search(r"the (\d+) bytes allowed", line).group(1)) < 2**30, line)


def idx_set(folder, labels, test_labels):
    """A data set of 4 x 4 images in the IDX form."""
    os.makedirs(folder)
    for name, values in (("train", labels), ("t10k", test_labels)):
        with open(os.path.join(folder, f"{name}-images-idx3-ubyte"), "wb") as file:
            file.write(struct.pack(">4B3I", 0, 0, 8, 3, len(values), 4, 4) + bytes(range(16)) * len(values))
        with open(os.path.join(folder, f"{name}-labels-idx1-ubyte"), "wb") as file:
            file.write(struct.pack(">4BI", 0, 0, 8, 1, len(values)) + bytes(values))
    return f"idx:{folder}"


def labels(folder):
    """Labels that the model has no output for."""
    model = ["--model", "mlp:widths=8x1", "--batch", "4", "--quiet"]
    good = idx_set(folder + "/good", [0, 9, 3, 4, 5], [1, 9])
    kept = folder + "/kept"
    check(run("train", *model, "--data", good, "--checkpoint", kept).returncode == 0, "labels 0 to 9")
    for at, (train, test) in enumerate((([0, 1, 200, 3], [1, 2]), ([0, 1, 2, 10], [1, 2]), ([0, 1], [1, 255]))):
        wrong = max(train + test)
        data = idx_set(f"{folder}/bad{at}", train, test)
        words = [f"label {wrong} of example", "[0, 10)"]
        target = f"{folder}/target{at}"
        expect_error(1, words, "train", *model, "--data", data, "--checkpoint", target, "--json", target + ".json")
        check(not os.path.exists(target) and not os.path.exists(target + ".json"), f"label {wrong}: files were left")
        if wrong in test:
            expect_error(1, words, "eval", "--checkpoint", kept, "--data", data)
    cifar = folder + "/cifar"
    os.mkdir(cifar)
    for name in [f"data_batch_{i}.bin" for i in range(1, 6)] + ["test_batch.bin"]:
        with open(os.path.join(cifar, name), "wb") as file:
            file.write(bytes([200 if name == "data_batch_3.bin" else 1]) + bytes(3072))
    expect_error(1, ["label 200 of example 2", "[0, 10)"], "train", *model, "--data", f"cifar10:{cifar}")
    # Data with more classes than the checkpoint's model has outputs.
    more = "synthetic:shape=1x4x4,classes=12,examples=8,test=8"
    expect_error(1, ["(10,8)", "(12,8)", "another model"], "eval", "--checkpoint", kept, "--data", more)


def full_disk(folder):
    """A checkpoint that does not fit: the earlier ones stay, and the run goes on once there is room."""
    disk = os.path.join(folder, "disk")
    os.mkdir(disk)
    mount = ["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", disk]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
        print("skipped: only root can mount a small file system, and not in every container")
        sys.exit(77)
    try:
        # 72 kB a checkpoint: weights of 64 x 128 and 128 x 4 and their velocities.
        train = ["train", "--model", "mlp:widths=128x1", *DATA, "--batch", "32", "--seed", "3", "--quiet",
                 "--steps", "40", "--checkpoint-every", "5", "--keep", "100"]
        target = os.path.join(disk, "c")
        filler = os.path.join(disk, "filler")
        files_that_did_not_fit = set()
        for taken in range(0, 80, 4):  # what is left decides whether tensors or manifest meet the end of the disk
            shutil.rmtree(target, ignore_errors=True)
            with open(filler, "wb") as file:
                file.write(bytes(1024 * taken))
            line = expect_error(1, ["No space left", target], *train, "--checkpoint", target)
            files_that_did_not_fit.add("manifest" if ".json" in line else "tensors")
            names = sorted(os.listdir(target))
            steps = {n.split(".")[0] for n in names}
            check(names == sorted(s + e for s in steps for e in (".json", ".safetensors")), f"left behind: {names}")
            check(len(steps) >= 2, f"{taken} kB taken: no earlier checkpoint: {names}")
            seen = run("eval", "--checkpoint", target)
            check(seen.returncode == 0, f"{taken} kB taken: the earlier checkpoint cannot be read: {seen.stderr}")
        check(files_that_did_not_fit == {"manifest", "tensors"}, f"met only: {files_that_did_not_fit}")
        whole = os.path.join(folder, "whole")
        check(run(*train, "--checkpoint", whole).returncode == 0, "a run with room")
        for name in names:
            if name.endswith(".safetensors"):
                with open(os.path.join(target, name), "rb") as one, open(os.path.join(whole, name), "rb") as other:
                    check(one.read() == other.read(), f"{name} is not what a run with room writes")
        subprocess.run(["mount", "-o", "remount,size=4m", disk], check=True)
        result = run(*train, "--checkpoint", target, "--resume")
        check(result.returncode == 0, f"resumed with room: {result.stderr}")
        check(newest_tensors(target) == newest_tensors(whole), "resumed with room: other weights")
        # What other flags write, on a disk that is full to the last byte.
        with open(filler, "wb", buffering=0) as file:
            try:
                while file.write(bytes(4096)):
                    pass
            except OSError:
                pass
        short = ["train", *SMALL, "--epochs", "1"]
        for flag in ("--json", "--trace", "--report", "--metrics"):
            before = os.listdir(disk)
            expect_error(1, ["No space left", disk], *short, flag, os.path.join(disk, "out"))
            if flag != "--metrics":  # lines are appended, the file is there from the start
                check(os.listdir(disk) == before, f"{flag}: left behind: {os.listdir(disk)}")
    finally:
        subprocess.run(["umount", disk], check=True)


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


def record(folder):
    """The record has what was in force, and nothing else."""
    def recorded(*arguments):
        file = os.path.join(folder, "record.json")
        result = run("train", *SMALL, *arguments, "--json", file)
        check(result.returncode == 0, result.stderr)
        return json.load(open(file))

    sgd, adam = recorded("--epochs", "2"), recorded("--steps", "5", "--optimizer", "adam")
    check(sgd["options"]["epochs"] == 2 and "steps" not in sgd["options"], f"epochs: {sgd['options']}")
    check(adam["options"]["steps"] == 5 and "epochs" not in adam["options"], f"steps: {adam['options']}")
    check(sgd["options"]["momentum"] == 0.9 and "momentum" not in adam["options"] and "nesterov" not in adam["options"],
          "momentum belongs to sgd")
    for key in ("context", "keep", "checkpoint-every", "data-dir"):
        check(key not in sgd["options"], f"{key} was not in force")
    check("keep" in recorded("--epochs", "1", "--checkpoint", os.path.join(folder, "c"))["options"], "keep")
    parameters = sgd["metrics"]["parameters"]
    check(type(parameters) is int and parameters == 64 * 16 + 16 + 16 * 4 + 4, f"parameters: {parameters!r}")
    # Of every step the chain is one example's forward and backward, and the update: a batch of one has no other work.
    one = recorded("--steps", "6", "--batch", "1")
    check(one["flops_sequential"] == one["flops_total"], f"a batch of one: {one['flops_sequential']}")
    many = recorded("--steps", "6", "--batch", "64")
    check(abs(many["flops_sequential"] - one["flops_total"]) < 0.02 * one["flops_total"],
          f"a batch of 64: {many['flops_sequential']}, one example {one['flops_total']}")
    # Means since the point before: together they are the mean over the run.
    every = recorded("--steps", "12", "--eval-every", "1")["history"]
    thinned = recorded("--steps", "1200", "--eval-every", "1200")["history"]
    check([p["step"] for p in thinned] == list(range(3, 1201, 3)), "a point every (steps / 400)th step")
    mean = sum(p["train_loss"] for p in every[:3]) / 3
    check(abs(thinned[0]["train_loss"] - mean) < 1e-12, f"train_loss: {thinned[0]['train_loss']} and {mean}")
    long_run = recorded("--steps", "60", "--eval-every", "1", "--lr", "0.001")
    mean = sum(p["train_loss"] for p in long_run["history"][-3:]) / 3
    check(abs(long_run["metrics"]["train_loss"] - mean) < 1e-12, "train_loss at the end: the last twentieth")


def resume_settings(folder):
    """A resumed run has the checkpoint's settings without its flags; what would make it another run is refused."""
    flags = ["--optimizer", "adam", "--lr", "0.01", "--lr-schedule", "cosine", "--weight-decay", "0.1", "--clip", "2",
             "--label-smoothing", "0.1", "--augment", "--eval-every", "5", "--dtype", "f64"]
    train = ["train", *SMALL, *flags]
    whole, halves = os.path.join(folder, "whole"), os.path.join(folder, "halves")
    check(run(*train, "--steps", "40", "--checkpoint", whole, "--checkpoint-every", "10").returncode == 0, "whole")
    shutil.copytree(whole, halves)
    for name in os.listdir(halves):
        if "00000040" in name:
            os.remove(os.path.join(halves, name))
    again = ["train", "--checkpoint", halves, "--resume"]
    for flag, value, theirs in (("--lr", "0.02", "0.01"), ("--batch", "16", "32"), ("--seed", "4", "3"),
                                ("--optimizer", "sgd", "adam"), ("--dtype", "f32", "f64"), ("--clip", "1", "2.0"),
                                ("--model", "mlp", "widths=16x1"), ("--data", "synthetic", "shape=1x8x8"),
                                ("--lr-schedule", "linear", "cosine"), ("--label-smoothing", "0.2", "0.1")):
        expect_error(2, ["--resume", flag, value, theirs], *again, flag, value)
    record = os.path.join(folder, "record.json")
    result = run(*again, "--lr", "0.01", "--json", record)
    check(result.returncode == 0 and "finished" not in result.stderr, f"resumed: {result.stderr}")
    check(newest_tensors(halves) == newest_tensors(whole), "resumed without flags: other weights")
    options = json.load(open(record))["options"]
    check(options["steps"] == 40 and options["optimizer"] == "adam" and options["eval-every"] == 5, f"{options}")
    # A run that is finished says so, and can be made longer but not shorter.
    result = run(*again)
    check(result.returncode == 0 and result.stdout == "" and result.stderr.count("\n") == 1
          and "finished" in result.stderr, f"a finished run: {result}")
    expect_error(2, ["40", "20"], *again, "--steps", "20")
    result = run(*again, "--epochs", "6")
    check(result.returncode == 0 and "48 steps" in result.stderr, f"longer: {result}")
    check(newest_tensors(halves)[0] == "step-00000048.safetensors", "longer")
    check(run("eval", "--checkpoint", halves).returncode == 0, "eval of an augmented run in f64")


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


def outputs(folder):
    """What a run writes: never over another run's checkpoints, a device, a link or its own other outputs."""
    plain = ["train", *SMALL, "--steps", "4"]
    train = [*plain, "--checkpoint-every", "2"]
    first = os.path.join(folder, "first")
    check(run(*train, "--checkpoint", first).returncode == 0, "a first run")
    before = sorted(os.listdir(first))
    expect_error(2, ["--checkpoint", "step 4", "--resume"], *train, "--checkpoint", first, "--steps", "2")
    check(sorted(os.listdir(first)) == before, "the first run's checkpoints were touched")
    lock = os.open(first, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    expect_error(1, ["another run"], *train, "--checkpoint", first, "--resume")
    os.close(lock)
    name, whole = newest_tensors(first)
    with open(os.path.join(first, name), "wb") as file:
        file.write(whole[:100])
    result = run(*[a for a in train if a != "--quiet"], "--checkpoint", first, "--resume")
    check(result.returncode == 0 and "passed over" in result.stderr, f"a damaged newest checkpoint: {result.stderr}")
    check(newest_tensors(first)[1] == whole, "the run resumed before the damaged checkpoint has other bits")

    pipe, link = os.path.join(folder, "pipe"), os.path.join(folder, "link")
    os.mkfifo(pipe)
    os.symlink("real.json", link)
    expect_error(1, ["not a regular file"], *plain, "--json", pipe)
    check(stat.S_ISFIFO(os.stat(pipe).st_mode), "the pipe was replaced")
    for _ in range(2):  # dangling, then not
        check(run(*plain, "--json", link).returncode == 0 and os.path.islink(link), "the link was replaced")
        json.load(open(os.path.join(folder, "real.json")))
    os.symlink("loop", os.path.join(folder, "loop"))
    expect_error(1, ["symbolic links"], *plain, "--json", os.path.join(folder, "loop"))
    expect_error(1, ["too long"], *plain, "--json", os.path.join(folder, "n" * 256))
    expect_error(2, ["--trace", "--json"], *plain, "--json", "x", "--trace", "./x", cwd=folder)
    expect_error(2, ["checkpoint's file"], *train, "--checkpoint", "k", "--json", "k/step-00000002.json", cwd=folder)

    # Standard descriptors that are closed are not given to the run's files.
    metrics = os.path.join(folder, "metrics.jsonl")
    command = [PROGRAM, *[a for a in plain if a != "--quiet"], "--metrics", metrics, "--eval-every", "1"]
    closed = subprocess.run(["sh", "-c", 'exec "$@" >&- 2>&- <&-', "sh", *command])
    check(closed.returncode == 0, f"closed descriptors: exit {closed.returncode}")
    for line in open(metrics):
        json.loads(line)
    full = subprocess.run(["sh", "-c", 'exec "$0" info >/dev/full', PROGRAM], capture_output=True, text=True)
    check(full.returncode == 1 and "standard output" in full.stderr, f"a full standard output: {full}")
    long_run = [PROGRAM, *[a for a in plain if a != "--quiet"], "--steps", "40", "--eval-every", "1"]
    unread = os.path.join(folder, "unread")
    process = subprocess.Popen([*long_run, "--checkpoint", unread], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
    process.stderr.close()
    check(process.wait() == 0 and newest_tensors(unread)[0] == "step-00000040.safetensors", "a pipe without a reader")
    small = subprocess.run(["sh", "-c", 'ulimit -f 1; exec "$@"', "sh", PROGRAM, *train, "--checkpoint",
                            os.path.join(folder, "small")], capture_output=True, text=True)
    check(small.returncode == 1 and "too large" in small.stderr and not os.listdir(os.path.join(folder, "small")),
          f"a limit on file sizes: {small}")


def values(folder):
    """Values of flags that look like numbers and are none, or too large a one."""
    train = ["train", *SMALL, "--steps", "1"]
    for flag in ("--lr", "--steps", "--threads", "--checkpoint", "--json"):
        expect_error(2, [flag, "empty"], *train, flag, "")
    expect_error(2, ["--epochs"], "train", *SMALL, "--epochs", str(2**63 - 1))
    for keep in (2**31, 2**32, 2**32 + 1):
        expect_error(2, ["--keep", "at most"], *train, "--keep", str(keep))
    for seed in ("-1", str(2**64), "1.5", "x"):
        expect_error(2, ["--seed", seed], *train, "--seed", seed)
    check(run(*train, "--seed", str(2**64 - 1)).returncode == 0, "the largest seed")
    expect_error(2, ["--nesterov"], *train, "--nesterov", "--optimizer", "adam")
    expect_error(2, ["--trace-steps"], *train, "--trace-steps", "3")
    for bad in ("a\nb", "\x1b[31m", "x" * 100000):
        for flag in ("--model", "--strategy", "--dtype", "--lr-schedule", "--batch", "--nosuch"):
            line = expect_error(2, [], *train, flag, bad)
            check("\x1b" not in line and len(line) < 3000, f"{flag}: the value is not made printable: {line[:80]!r}")

    # Weights that are no numbers any more never become a checkpoint.
    diverged = os.path.join(folder, "diverged")
    for steps in ("30", "1"):
        shutil.rmtree(diverged, ignore_errors=True)
        expect_error(1, ["not finite"], "train", *SMALL, "--steps", steps, "--lr", "1e30", "--checkpoint", diverged,
                     "--checkpoint-every", "1", "--keep", "1")
        check(sorted(os.listdir(diverged)) == ["step-00000000.json", "step-00000000.safetensors"],
              f"after a diverged run: {os.listdir(diverged)}")

    # A manifest whose state is of other types.
    manifest = os.path.join(diverged, "step-00000000.json")
    good = json.load(open(manifest))
    for key in ("settings", "position", "history", "total_steps", "isa", "wall_s", "optimizer_steps"):
        for wrong in (None, [], "x", {"a": 1}):
            if (key, wrong) in (("history", []),) or type(good["state"].get(key)) is type(wrong):
                continue
            damaged = json.loads(json.dumps(good))
            damaged["state"][key] = wrong
            json.dump(damaged, open(manifest, "w"))
            result = run("train", *SMALL, "--steps", "1", "--lr", "1e30", "--checkpoint", diverged, "--resume")
            line = result.stderr.strip()
            check(result.returncode in (1, 2) and line.startswith("lamina:") and "\n" not in line
                  and ("checkpoint" in line or "--resume" in line or "not finite" in line), f"state {key} = {wrong}: {line}")

    # Interrupted while it evaluates.
    process = subprocess.Popen([PROGRAM, "train", "--model", "mlp:widths=256x1", "--data",
                                "synthetic:shape=1x8x8,classes=4,examples=256,test=100000000", "--steps", "1",
                                "--quiet"], stderr=subprocess.DEVNULL)
    time.sleep(2)
    process.send_signal(signal.SIGINT)
    check(process.wait(timeout=60) == 130, "interrupted in an evaluation")


with tempfile.TemporaryDirectory() as temporary:
    {"errors": errors, "files": files, "full_disk": full_disk, "help": help_texts, "ignored": ignored,
     "labels": labels, "ops": ops, "outputs": outputs, "record": record, "resume": resume, "resume_settings": resume_settings,
     "sizes": sizes, "threads": threads, "values": values}[sys.argv[2]](temporary)
sys.exit(1 if failures else 0)
