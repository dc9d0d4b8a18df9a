"""The launcher as a user runs it: launch.py PROGRAM MEET SUITE. Standard library only."""
import os
import re
import signal
import socket
import subprocess
import sys
import time

PROGRAM, MEET = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
failures = []


def check(condition, text):
    if not condition:
        failures.append(text)
        print("FAILED:", text, flush=True)


def command(*arguments):
    return [PROGRAM, "launch", *arguments]


def shell(script):
    return ["sh", "-c", script]


def run(*arguments, timeout=60, **keywords):
    return subprocess.run(command(*arguments), capture_output=True, text=True, timeout=timeout, **keywords)


def marked(mark):
    """Processes, defunct ones too, that have MARK=<mark> in their environment or descend from one that has."""
    found, parents = set(), {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat") as file:
                parents[int(name)] = int(file.read().rpartition(") ")[2].split()[1])
            with open(f"/proc/{name}/environ", "rb") as file:
                if f"MARK={mark}".encode() in file.read().split(b"\0"):
                    found.add(int(name))
        except OSError:
            pass
    size = -1
    while size != len(found):
        size = len(found)
        found |= {pid for pid, parent in parents.items() if parent in found}
    return found


def expect_gone(mark, within, text):
    until = time.monotonic() + within
    while (left := marked(mark)) and time.monotonic() < until:
        time.sleep(0.05)
    check(not left, f"{text}: still there: {left}")
    for pid in left:
        os.kill(pid, signal.SIGKILL)


def environment(mark):
    return {**os.environ, "MARK": mark}


def starts(mark, *arguments, processes):
    """A launch, once so many processes of it run (launcher and keeper are two)."""
    process = subprocess.Popen(command(*arguments), env=environment(mark), stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 20
    while len(marked(mark)) < processes and time.monotonic() < until:
        time.sleep(0.02)
    check(len(marked(mark)) >= processes, f"{mark}: {marked(mark)} are not {processes} processes")
    time.sleep(0.2)
    return process


def usage():
    def expect(words, *arguments):
        result = run(*arguments)
        line = result.stderr.strip()
        check(result.returncode == 2, f"{arguments}: exit {result.returncode}: {line}")
        check("\n" not in line and line.startswith("lamina:"), f"{arguments}: not one line: {line!r}")
        for word in words:
            check(word in line, f"{arguments}: '{word}' is not in: {line}")

    expect(["--ranks"], "true")
    expect(["program"], "-n", "2")
    expect(["program"], "-n", "2", "--")
    expect(["-n is 0"], "-n", "0", "true")
    expect(["-n is -1"], "-n", "-1", "true")
    expect([], "-n", "x", "true")
    expect(["--frobnicate"], "-n", "2", "--frobnicate", "true")
    expect(["--env", "NAME=VALUE"], "-n", "2", "--env", "X", "true")
    expect(["--host", "nowhere"], "-n", "2", "--host", "nowhere", "true")
    expect(["--grace"], "-n", "2", "--grace", "-1", "true")
    help_text = run("--help")
    check(help_text.returncode == 0 and "LAMINA_RANK" in help_text.stdout and "--prefix" in help_text.stdout, "--help")
    for program, code, words in (("/no/such/program", 127, "No such file"), ("/etc/passwd", 126, "Permission denied")):
        result = run("-n", "3", program)
        check(result.returncode == code and words in result.stderr and result.stderr.count("\n") == 1,
              f"{program}: {result}")


def meets():
    for n in (1, 2, 5):
        result = run("-n", str(n), MEET, "3")
        check(result.returncode == 0 and result.stderr == "", f"{n} ranks: {result}")
        check(sorted(result.stdout.splitlines()) == [f"rank {r} of {n} has met" for r in range(n)], result.stdout)
    result = run("-n", "3", "--prefix", "--", MEET)
    check(sorted(result.stdout.splitlines()) == [f"[{r}] rank {r} of 3 has met" for r in range(3)], f"prefix: {result}")
    result = run("-n", "2", "--prefix", *shell("printf a; echo b >&2; printf 'c\\nd'"))
    check(sorted(result.stdout.splitlines()) == ["[0] ac", "[0] d", "[1] ac", "[1] d"], f"prefix: {result}")
    check(sorted(result.stderr.splitlines()) == ["[0] b", "[1] b"], f"prefix of errors: {result}")
    result = run("-n", "2", "--prefix", *shell("seq 20000"))
    check(len(result.stdout.splitlines()) == 40000 and all(re.fullmatch(r"\[[01]\] \d+", line)
          for line in result.stdout.splitlines()), "much output")
    # Arguments are the program's, whatever they look like; variables; standard input is rank 0's.
    result = run("-n", "1", "echo", "-n", "--prefix", "", "--", "x")
    check(result.stdout == "--prefix  -- x", f"arguments: {result.stdout!r}")
    result = run("-n", "2", "--env", "A=1", "--env", "B=x=y", "--env", "A=2",
                 *shell("echo $LAMINA_RANK/$LAMINA_SIZE $LAMINA_LOCAL_RANK/$LAMINA_LOCAL_SIZE $A $B"))
    check(sorted(result.stdout.splitlines()) == ["0/2 0/2 2 x=y", "1/2 1/2 2 x=y"], f"variables: {result}")
    result = run("-n", "2", *shell("cat"), input="text")
    check(result.stdout == "text", f"standard input: {result}")
    # A rank that comes late.
    result = run("-n", "3", *shell(f"[ $LAMINA_RANK = 1 ] && sleep 1; exec {MEET}"))
    check(result.returncode == 0, f"late: {result}")
    result = run("-n", "3", *shell(f"[ $LAMINA_RANK = 0 ] && sleep 1; exec {MEET}"))
    check(result.returncode == 0, f"late rank 0: {result}")
    # Nothing but the standard descriptors and rank 0's socket is passed on.
    result = run("-n", "2", "--prefix", *shell("ls /proc/self/fd | wc -l"))
    check(sorted(result.stdout.splitlines()) == ["[0] 5", "[1] 4"], f"descriptors: {result.stdout}")
    if socket.has_ipv6:
        result = run("-n", "2", "--host", "::1", MEET)
        check(result.returncode == 0 or "cannot listen" in result.stderr, f"IPv6: {result}")


def at_once():
    """20 launches at once; and killed and launched again at once, 20 times."""
    launches = [subprocess.Popen(command("-n", "3", MEET, "5"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                for _ in range(20)]
    for process in launches:
        out, err = process.communicate(timeout=100)
        check(process.returncode == 0 and out.count("has met") == 3, f"one of 20: {process.returncode} {out} {err}")
    for i in range(20):
        mark = f"again-{os.getpid()}-{i}"
        process = subprocess.Popen(command("-n", "3", MEET, "hang"), env=environment(mark), stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        time.sleep(0.01 * i)
        process.kill()
        result = run("-n", "3", MEET)
        check(result.returncode == 0, f"launched again: {result}")
        process.wait()
        expect_gone(mark, 5, f"killed after {10 * i} ms")


def failing_rank():
    others = "trap '' HUP; sleep 60 & sleep 60; true"
    stubborn = "trap '' TERM INT; while :; do sleep 1; done"
    leaving = "setsid sh -c \"trap '' TERM; sleep 60; true\" & sleep 60; true"
    for name, rest in (("plain", "exec sleep 60"), ("with children", others), ("stubborn", stubborn), ("leaving", leaving)):
        for what, code, words in (("exit 7", 7, "exited with 7"), ("kill -SEGV $$", 139, "signal 11"),
                                  ("kill -KILL $$", 137, "signal 9")):
            mark = f"rank-{os.getpid()}-{name}-{what}".replace(" ", "_")
            start = time.monotonic()
            result = run("-n", "4", *shell(f"if [ $LAMINA_RANK = 2 ]; then sleep 0.3; {what}; fi; {rest}"),
                         env=environment(mark))
            took = time.monotonic() - start
            check(result.returncode == code, f"{name}, {what}: exit {result.returncode}: {result.stderr}")
            line = [text for text in result.stderr.splitlines() if text.startswith("lamina:")]
            check(len(line) == 1 and "rank 2 of 4" in line[0] and words in line[0], f"{name}, {what}: {result.stderr}")
            check(took < 5, f"{name}, {what}: took {took:.1f} s")
            expect_gone(mark, 0.5, f"{name}, {what}")
    # A good exit stops nobody; the first bad one counts.
    result = run("-n", "3", *shell("sleep 0.$LAMINA_RANK; exit $LAMINA_RANK"))
    check(result.returncode == 1, f"first bad exit: {result}")
    result = run("-n", "3", *shell("sleep 0.$LAMINA_RANK"))
    check(result.returncode == 0 and result.stderr == "", f"good exits: {result}")
    # What good ranks leave running ends with the launch.
    mark = f"left-{os.getpid()}"
    result = run("-n", "2", *shell("setsid sleep 60 >/dev/null 2>&1 & sleep 0.2"), env=environment(mark))
    check(result.returncode == 0, f"left running: {result}")
    expect_gone(mark, 0.5, "left running")
    # A rank that dies where the others wait for it.
    result = run("-n", "3", *shell(f"[ $LAMINA_RANK = 1 ] && exit 9; exec {MEET}"))
    check(result.returncode == 9, f"died before it came: {result}")


def signals():
    for number, code in ((signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)):
        for name, script, processes in (("plain", "exec sleep 60", 5), ("children", "sleep 60 & sleep 60; true", 11),
                                        ("stubborn", "trap '' TERM INT HUP; while :; do sleep 1; done", 8)):
            mark = f"signal-{os.getpid()}-{name}-{number}"
            process = starts(mark, "-n", "3", *shell(script), processes=processes)
            process.send_signal(number)
            start = time.monotonic()
            check(process.wait(timeout=20) == code, f"{name}, {number}: exit {process.returncode}")
            check(time.monotonic() - start < 5, f"{name}, {number}: {time.monotonic() - start:.1f} s")
            expect_gone(mark, 0.5, f"{name}, {number}")
    # Ranks get it, and time to do as they like.
    process = subprocess.Popen(command("-n", "2", *shell("trap 'echo stopped; exit 0' TERM; echo here; while :; do sleep 0.1; done")),
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    for _ in range(2):
        process.stdout.readline()
    process.send_signal(signal.SIGTERM)
    check(process.communicate(timeout=20)[0].count("stopped") == 2 and process.returncode == 143, "ranks that stop well")
    # Nobody reads what the ranks write.
    mark = f"unread-{os.getpid()}"
    process = subprocess.Popen(command("-n", "2", "--prefix", "yes"), stdout=subprocess.PIPE, env=environment(mark))
    time.sleep(0.5)
    process.send_signal(signal.SIGTERM)
    check(process.wait(timeout=20) == 143, f"unread output: exit {process.returncode}")
    expect_gone(mark, 0.5, "unread output")
    process.stdout.close()
    # A second one does not wait.
    mark = f"twice-{os.getpid()}"
    process = starts(mark, "-n", "2", "--grace", "50", *shell("trap '' TERM; while :; do sleep 1; done"), processes=6)
    process.send_signal(signal.SIGTERM)
    time.sleep(0.3)
    process.send_signal(signal.SIGTERM)
    check(process.wait(timeout=5) == 143, "second signal")
    expect_gone(mark, 0.5, "second signal")
    # Killed: the launcher, and the process that keeps the ranks.
    for victim in ("launcher", "keeper"):
        for name, script, processes in (("plain", "exec sleep 60", 5), ("children", "sleep 60 & sleep 60; true", 11),
                                        ("stubborn", "trap '' TERM; while :; do sleep 1; done", 8)):
            mark = f"kill-{os.getpid()}-{victim}-{name}"
            process = starts(mark, "-n", "3", *shell(script), processes=processes)
            keeper = int(open(f"/proc/{process.pid}/task/{process.pid}/children").read().split()[0])
            os.kill(process.pid if victim == "launcher" else keeper, signal.SIGKILL)
            code = process.wait(timeout=10)
            check(code == (-9 if victim == "launcher" else 137), f"{victim} killed: exit {code}")
            expect_gone(mark, 5, f"{victim} killed, {name}")


def scanner():
    """A rendezvous that is scanned: the place of a rank 0 that is late is open to everybody."""
    process = subprocess.Popen(command("-n", "3", *shell(f"echo $LAMINA_MEETING; [ $LAMINA_RANK = 0 ] && sleep 1; exec {MEET}")),
                               stdout=subprocess.PIPE, text=True)
    while not (line := process.stdout.readline()).startswith("tcp://"):
        pass
    host, port = line.strip()[len("tcp://"):].rsplit(":", 1)
    kept = []
    for i in range(100):
        try:
            connection = socket.create_connection((host, int(port)), timeout=5)
            connection.sendall((b"GET / HTTP/1.0\r\n\r\n", os.urandom(4000), b"LMRV" + b"\xff" * 16, b"")[i % 4])
            kept.append(connection)
        except OSError:
            pass
        time.sleep(0.012)
    out = process.communicate(timeout=30)[0]
    check(process.returncode == 0 and out.count("has met") == 3, f"scanned: {process.returncode} {out}")


def group():
    """examples/ranks: a program that knows nothing of who started it."""
    ranks = sys.argv[4]
    result = run("-n", "3", ranks)
    lines = sorted(result.stdout.splitlines())
    check(result.returncode == 0 and lines == [f"rank {r} of 3 over shm: the mean of all ranks is 1" for r in range(3)],
          f"examples/ranks: {result.returncode} {lines} {result.stderr}")


{"at_once": at_once, "failing_rank": failing_rank, "group": group, "meets": meets, "scanner": scanner, "signals": signals,
 "usage": usage}[sys.argv[3]]()
sys.exit(1 if failures else 0)
