"""lamina as its users meet it, one step a CTest: install it, move it, find it, build against it, run it.

The prefix is moved after the installation, so that nothing may lean on where it was; the consumers in consumer/ are
built at -O0 from an empty folder. Only Python's standard library.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
# A stripped program may be this much larger than its budget; see budget.json.
GROWTH = 1.05


class Failure(Exception):
    pass


def run(*command, **options):
    """Runs a command and returns what it wrote to its output; a failure shows the end of all that it wrote."""
    done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          errors="replace", **options)
    if done.returncode != 0:
        told = "\n".join(done.stdout.splitlines()[-40:] + done.stderr.splitlines()[-40:])
        raise Failure(f"{' '.join(map(str, command))}\n{told}\nended with {done.returncode}")
    return done.stdout


def expect(condition, message):
    if not condition:
        raise Failure(message)


# ---- installing ----

def install(a):
    for folder in (a.prefix, a.moved):
        shutil.rmtree(folder, ignore_errors=True)
    run(a.cmake, "--install", a.build, "--prefix", a.prefix)
    a.prefix.rename(a.moved)
    for wanted in ("include/lamina/core/tensor.hpp", "include/lamina/kernels/op_list.hpp",
                   "share/doc/lamina/LICENSE"):
        expect((a.moved / wanted).exists(), f"not installed: {wanted}")
    for unwanted in ("tests", "bench", "tools", "kernels/cpu/simd", "kernels/formula.hpp"):
        expect(not (a.moved / "include/lamina" / unwanted).exists(), f"installed, but private: {unwanted}")


def paths(a):
    """No installed file knows the machine it was built on. Debug information may; the rest of an archive may not."""
    found = []
    needles = [str(p).encode() for p in (a.source, a.build, a.prefix)]
    for file in sorted(p for p in a.moved.rglob("*") if p.is_file()):
        content = file.read_bytes()
        if content.startswith((b"!<arch>", b"\x7fELF")):
            with tempfile.TemporaryDirectory() as folder:
                stripped = pathlib.Path(folder) / file.name
                run("strip", "-g", "-o", stripped, file)
                content = stripped.read_bytes()
        found += [f"{file.relative_to(a.moved)}: {n.decode()}" for n in needles if n in content]
    expect(not found, "absolute paths in installed files:\n" + "\n".join(found))


# ---- headers ----

def installed_headers(a):
    include = a.moved / "include"
    return include, sorted(str(p.relative_to(include)) for p in include.rglob("*.hpp"))


def foreign_macros_of(a, include, headers):
    """Macros defined by files under `include` that do not begin with LAMINA_, as 'file: name'."""
    text = "".join(f'#include "{h}"\n' for h in headers)
    output = run(a.cxx, "-std=c++20", "-E", "-dD", "-x", "c++", "-I", include, "-", input=text)
    found, file = set(), ""
    for line in output.splitlines():
        marker = re.match(r'# \d+ "([^"]*)"', line)
        if marker:
            file = marker.group(1)
        define = re.match(r"#define (\w+)", line)
        if define and file.startswith(str(include)) and not define.group(1).startswith("LAMINA_"):
            found.add(f"{os.path.relpath(file, include)}: {define.group(1)}")
    return sorted(found)


def macros(a):
    include, headers = installed_headers(a)
    found = foreign_macros_of(a, include, headers)
    expect(not found, "macros without the prefix LAMINA_:\n" + "\n".join(found))
    print(f"{len(headers)} headers")


def macros_selftest(a):
    with tempfile.TemporaryDirectory() as folder:
        include = pathlib.Path(folder).resolve()
        (include / "bad.hpp").write_text("#include <cassert>\n#define LAMINA_FINE 1\n#define CHECK(x) (x)\n")
        found = foreign_macros_of(a, include, ["bad.hpp"])
    expect(found == ["bad.hpp: CHECK"], f"a planted macro was not found: {found}")


def foreign_macros(a):
    """The headers compile where somebody else's macros have taken the usual names."""
    include, headers = installed_headers(a)
    # What lamina's headers include comes first: those are not ours to make robust.
    system = sorted({m for h in headers
                     for m in re.findall(r"^#include (<.*>)", (include / h).read_text(), re.M)})
    names = "CHECK CHECK_EQ LOG ERROR DEBUG INFO WARNING FATAL ASSERT EXPECT FAIL TEST Status Success".split()
    text = "".join(f"#include {s}\n" for s in system)
    text += "".join(f"#define {n} @\n" for n in names)
    text += "".join(f'#include "{h}"\n' for h in headers)
    text += "int main() {}\n"
    run(a.cxx, "-std=c++20", "-fsyntax-only", "-x", "c++", "-I", include, "-", input=text)


# ---- consumers ----

def configure(a, folder, *options):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    launcher = [f"-DCMAKE_CXX_COMPILER_LAUNCHER={a.launcher}"] if a.launcher else []
    run(a.cmake, "-S", HERE / "consumer", "-B", folder, "-G", a.generator, f"-DCMAKE_CXX_COMPILER={a.cxx}",
        "-DCMAKE_CXX_FLAGS=-O0", "-DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF", *launcher, *options)


def consumer(a):
    configure(a, a.consumer, f"-DCMAKE_PREFIX_PATH={a.moved}")
    run(a.cmake, "--build", a.consumer)
    print(run(a.consumer / "one_op"), end="")


def unchanged_selftest(a):
    try:
        configure(a, a.work / "planted", f"-DCMAKE_PREFIX_PATH={a.moved}", "-DPLANT=ON")
    except Failure as failure:
        for name in ("CMAKE_CXX_FLAGS", "directory_COMPILE_OPTIONS"):
            expect(f"{name}: " in str(failure), f"a planted change of {name} was not found:\n{failure}")
        return
    raise Failure("planted changes of the using project were not found")


def expect_clean_flags(folder):
    """Nothing of how lamina is compiled reaches those who use it, but the language level and where things are."""
    for entry in json.loads((folder / "compile_commands.json").read_text()):
        if "/consumer/" not in entry["file"]:
            continue
        bad = re.findall(r" (-(?:W|pedantic|fvisibility=default|ffp|ffast|fno|fsan|m|O[^0])\S*)", entry["command"])
        expect(not bad, f"{entry['file']} is compiled with {' '.join(bad)}")


def flags(a):
    expect_clean_flags(a.consumer)


def every_op(a):
    print(run(a.consumer / "every_op"), end="")


def exports(a):
    """A shared object with lamina inside shows its own symbols and, as every one does, weak ones of std."""
    lines = run("nm", "-D", "--defined-only", "-C", a.consumer / "libplugin.so").splitlines()
    symbols = [line.split(" ", 2)[2] for line in lines]
    expect("consumer_twice" in symbols, "the plug-in does not export its function")
    foreign = [s for s in symbols if s != "consumer_twice" and not re.search(r"\b(std|__gnu_cxx|fmt)::", s)]
    expect(not foreign, "exported:\n" + "\n".join(foreign))


def runtimes(a):
    """No OpenMP runtime; no shared library beyond those that the rooms are allowed."""
    allowed = re.compile(r"lib(stdc\+\+|m|gcc_s|c|fmt|z|xxhash|jpeg|turbojpeg|png16|mujoco)\.so|ld-linux")
    for program in ("one_op", "every_op", "libplugin.so"):
        needed = re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-d", a.consumer / program))
        bad = [n for n in needed if not allowed.match(n)]
        expect(not bad, f"{program} needs {' '.join(bad)}")
        print(f"{program}: {' '.join(needed)}")


def size(a):
    budget = json.loads((HERE / "budget.json").read_text())
    too_large = []
    for program, bytes_allowed in budget.items():
        stripped = a.consumer / f"{program}.stripped"
        run("strip", "-o", stripped, a.consumer / program)
        bytes_found = stripped.stat().st_size
        print(f"{program}: {bytes_found} bytes stripped, budget {bytes_allowed}")
        if bytes_found > bytes_allowed * GROWTH:
            too_large.append(program)
    expect(not too_large or not a.optimised, f"over budget: {' '.join(too_large)}")


def subdirectory(a):
    """As a folder of another project: configures, leaves that project alone, and its sources compile."""
    configure(a, a.work / "subdirectory", f"-DLAMINA_SOURCE={a.source}")
    expect_clean_flags(a.work / "subdirectory")
    if a.generator == "Ninja":
        run(a.cmake, "--build", a.work / "subdirectory", "--target", "CMakeFiles/one_op.dir/one_op.cpp.o",
            "CMakeFiles/every_op.dir/every_op.cpp.o")


def subdirectory_flags(a):
    """As a folder of a project that says nothing lamina is optimised, and its warnings are not that project's errors."""
    folder = a.work / "subdirectory_flags"

    def own(*options):
        configure(a, folder, f"-DLAMINA_SOURCE={a.source}", "-DCMAKE_CXX_FLAGS=", *options)
        entries = json.loads((folder / "compile_commands.json").read_text())
        commands = [e["command"] for e in entries if "/consumer/" not in e["file"]]
        expect(len(commands) > 100, f"{len(commands)} sources of lamina are compiled")
        return commands

    def count(commands, flag):
        return sum(f" {flag} " in command for command in commands)

    plain = own()
    expect(count(plain, "-O2") == len(plain), f"without a build type {len(plain) - count(plain, '-O2')} lack -O2")
    expect(count(plain, "-Werror") == 0, "-Werror is forced on a using project")
    level = folder.with_suffix(".cmake")
    level.write_text("add_compile_options(-O3)\n")
    for command in own(f"-DCMAKE_PROJECT_INCLUDE={level}"):
        expect(command.rindex(" -O3 ") > command.rindex(" -O2 "), f"-O2 comes after that project's -O3:\n{command}")
    strict = own("-DCMAKE_BUILD_TYPE=Debug", "-DLAMINA_WERROR=ON")
    expect(count(strict, "-O2") == 0, "a debug build is optimised")
    expect(count(strict, "-Werror") == len(strict), "LAMINA_WERROR is ignored")


def subdirectory_run(a):
    configure(a, a.work / "subdirectory_run", f"-DLAMINA_SOURCE={a.source}")
    run(a.cmake, "--build", a.work / "subdirectory_run", "--target", "one_op")
    print(run(a.work / "subdirectory_run/one_op"), end="")


STEPS = [install, paths, macros, macros_selftest, foreign_macros, consumer, unchanged_selftest, flags, every_op, exports, runtimes, size,
         subdirectory, subdirectory_flags, subdirectory_run]


def main():
    steps = {s.__name__: s for s in STEPS}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("step", choices=steps)
    for folder in ("source", "build", "work"):
        parser.add_argument(f"--{folder}", type=pathlib.Path, required=True)
    parser.add_argument("--cmake", default="cmake")
    parser.add_argument("--cxx", default="g++")
    parser.add_argument("--launcher", default="")
    parser.add_argument("--generator", default="Ninja")
    parser.add_argument("--optimised", type=lambda text: text == "ON", default=False)
    a = parser.parse_args()
    a.prefix, a.moved, a.consumer = a.work / "prefix", a.work / "moved", a.work / "consumer"
    try:
        steps[a.step](a)
    except Failure as failure:
        sys.exit(f"package.{a.step}: {failure}")


if __name__ == "__main__":
    main()
