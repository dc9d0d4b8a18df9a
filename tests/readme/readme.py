"""The first program in README.md is examples/first, and prints what a reader expects: readme.py SOURCE PROGRAM."""
import pathlib
import re
import subprocess
import sys

source, program = pathlib.Path(sys.argv[1]), sys.argv[2]
shown = re.search(r"```cpp\n(.*?)```", (source / "README.md").read_text(), re.DOTALL)
if shown is None or shown.group(1) != (source / "examples/first/main.cpp").read_text():
    sys.exit("README.md's program is not examples/first/main.cpp, letter by letter")
printed = subprocess.run([program], check=True, capture_output=True, text=True).stdout
losses = [float(x) for x in re.findall(r"loss ([0-9.]+)", printed)]
if len(losses) != 5 or losses != sorted(losses, reverse=True) or not printed.endswith("f(10) = 21.00\n"):
    sys.exit(f"examples/first printed\n{printed}")
