"""Every public header compiles alone, included twice, with the warnings of the library as errors.

  self_contained.py TREE --work DIR [--jobs N] [--cxx CXX] [--launcher CCACHE] -- FLAGS...

Compiles one small file a header, through the compiler cache where there is one, so that a second run takes a second.
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOMS = ("core", "kernels", "autograd", "nn", "dist", "models")
# Compiled once per instruction set inside a namespace, or shared with other languages: not for including alone.
REGION = re.compile(r"kernels/cpu/simd/.*|(kernels|dist/comm)/.*(/|_)vector\.hpp|kernels/formula\.hpp")


def headers_of(root):
    found = (str(p.relative_to(root)) for room in ROOMS for p in (root / room).rglob("*.hpp"))
    return sorted(h for h in found if not REGION.fullmatch(h))


def compile_alone(a, header):
    """What is wrong with the header, or None."""
    if not re.search(r"^#pragma once$", (a.tree / header).read_text(), re.M):
        return f"{header}: no #pragma once"
    source = a.work / (header.replace("/", "_") + ".cpp")
    text = f'#include "lamina/{header}"\n#include "lamina/{header}"\n'
    if not source.exists() or source.read_text() != text:
        source.write_text(text)
    launcher = [a.launcher] if a.launcher else []
    done = subprocess.run([*launcher, a.cxx, "-std=c++20", *a.flags, "-O0", "-c", source, "-o", source.with_suffix(".o")],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    source.with_suffix(".o").unlink(missing_ok=True)
    return f"{header} does not compile alone:\n{done.stdout}" if done.returncode else None


def check(a):
    a.work.mkdir(parents=True, exist_ok=True)
    headers = headers_of(a.tree)
    with concurrent.futures.ThreadPoolExecutor(a.jobs) as pool:
        return headers, [w for w in pool.map(lambda h: compile_alone(a, h), headers) if w]


def selftest(a):
    """Planted faults are found, and named, and nothing else is."""
    good = "#pragma once\n#include <string>\ninline std::string good() { return {}; }\n"
    faults = {
        "core/needs_string.hpp": "#pragma once\nstd::string needs();\n",
        "core/unguarded.hpp": "struct Unguarded {};\n",
        "nn/warns.hpp": "#pragma once\ninline int warns(int x) { { int x = 1; (void)x; } return x; }\n",
    }
    with tempfile.TemporaryDirectory() as folder:
        a.tree, a.work = pathlib.Path(folder) / "tree", pathlib.Path(folder) / "work"
        include = pathlib.Path(folder) / "include"
        for path, text in {"core/good.hpp": good, "kernels/cpu/simd/region.hpp": "vf x;\n", **faults}.items():
            (a.tree / path).parent.mkdir(parents=True, exist_ok=True)
            (a.tree / path).write_text(text)
        include.mkdir()
        (include / "lamina").symlink_to(a.tree)
        a.flags = ["-I", str(include), "-Wall", "-Wextra", "-Wshadow", "-Werror"]
        _, wrong = check(a)
    named = sorted(w.split(":")[0].split(" ")[0] for w in wrong)
    if named != sorted(faults):
        sys.exit(f"planted {sorted(faults)}, found {named}\n" + "\n".join(wrong))
    print(f"{len(faults)} planted faults found")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tree", type=pathlib.Path)
    parser.add_argument("--work", type=pathlib.Path)
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--cxx", default="c++")
    parser.add_argument("--launcher", default="")
    parser.add_argument("--selftest", action="store_true")
    end = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    a = parser.parse_args(sys.argv[1:end])
    a.flags = sys.argv[end + 1:]
    if a.selftest:
        return selftest(a)
    headers, wrong = check(a)
    print("\n".join(wrong + [f"{len(headers)} headers, {len(wrong)} of them wrong"]))
    return 1 if wrong or len(headers) < 10 else 0


if __name__ == "__main__":
    sys.exit(main())
