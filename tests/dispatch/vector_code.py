#!/usr/bin/env python3
"""Looks for AVX code where the linker or the loader could hand it to a machine that has none.

Instructions with a VEX or EVEX prefix may only be in functions of the namespaces lamina::avx2, avx512 and wide, and
those must be local to their object: of weak symbols the linker keeps one copy, and it may be the AVX one.
(faiss#5296: an AVX2 instruction in .init_array; pains.md 4.06.)
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile

ISA = re.compile(r"lamina::(avx2|avx512|wide)::")
FUNCTION = re.compile(r"^[0-9a-f]+ <(.*)>:$")
INSTRUCTION = re.compile(r"^\s+[0-9a-f]+:\s+(?:\{[a-z0-9]+\} )?(\S+)\s*(.*)$")
LEGACY_V = {"verr", "verw"}  # the only mnemonics in v that are older than AVX and reach user code


def is_vector(mnemonic, operands):
    if mnemonic.startswith("v") and mnemonic not in LEGACY_V:
        return True
    return "%ymm" in operands or "%zmm" in operands


def findings(path, objdump, nm):
    found = []
    code = subprocess.run([objdump, "-d", "-w", "-C", "--no-show-raw-insn", path], check=True, capture_output=True,
                          text=True).stdout
    function, vector_functions = "", set()
    for line in code.splitlines():
        if match := FUNCTION.match(line):
            function = match.group(1)
        elif (match := INSTRUCTION.match(line)) and is_vector(*match.groups()):
            vector_functions.add(function)
    for name in sorted(vector_functions):
        if not ISA.search(name):
            found.append(f"AVX instructions outside the vector code: {name}")
    symbols = subprocess.run([nm, "-C", path], check=True, capture_output=True, text=True).stdout
    for line in symbols.splitlines():
        match = re.match(r"^[0-9a-f]+ (\S) (.*)$", line)
        if match and ISA.search(match.group(2)) and match.group(1) in "TWVuBDRGSC":
            found.append(f"vector code that is not local (type {match.group(1)}): {match.group(2)}")
    return found, len(vector_functions)


FAULTS = {
    "outside the vector code: void f<float>": ([], """
      template <class T> __attribute__((target("avx2"), noinline)) void f(T* x) { for (int i = 0; i < 64; ++i) x[i] += 1; }
      template void f(float*);"""),
    "outside the vector code: _GLOBAL__sub_I": (["-mavx2"], "float g(int); float table = g(1) * g(2);"),
    "not local (type W)": ([], """
      namespace lamina::avx2 { template <class T> T twice(T x) { return x + x; } template float twice(float); }"""),
    "not local (type T)": ([], "namespace lamina::avx512 { int f(int x) { return 2 * x; } }"),
}


def selftest(compiler, objdump, nm):
    ok = True
    with tempfile.TemporaryDirectory() as folder:
        for expected, (flags, code) in FAULTS.items():
            source, target = os.path.join(folder, "a.cpp"), os.path.join(folder, "a.o")
            with open(source, "w") as file:
                file.write(code + "\n")
            subprocess.run([compiler, "-std=c++20", "-O3", *flags, "-c", source, "-o", target], check=True)
            found, _ = findings(target, objdump, nm)
            if not any(expected in f for f in found):
                print(f"not found: {expected}; found: {found}")
                ok = False
    return ok


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--objdump", default="objdump")
    parser.add_argument("--nm", default="nm")
    parser.add_argument("--selftest", metavar="COMPILER")
    parser.add_argument("libraries", nargs="*")
    arguments = parser.parse_args()
    if arguments.selftest:
        return 0 if selftest(arguments.selftest, arguments.objdump, arguments.nm) else 1
    failed = False
    for library in arguments.libraries:
        found, functions = findings(library, arguments.objdump, arguments.nm)
        print(f"{library}: {functions} functions with AVX instructions, {len(found)} findings")
        for text in found[:40]:
            print("  " + text)
        failed = failed or bool(found) or functions == 0
    return 1 if failed else 0


sys.exit(main())
