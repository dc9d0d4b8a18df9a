#!/usr/bin/python3
"""Runs two benchmarks that print the same rows in turn and prints the ratio of their times a row, the second's over the
first's: above 1 the first is faster. Median, and in brackets the least and the largest of the rounds.
    bench/against.py 5 'build/bench/bench/pool "" 0.1' 'bench/pool_torch.py "" 0.1'"""
import collections
import shlex
import statistics
import subprocess
import sys


def rows(command):
    done = subprocess.run(shlex.split(command), check=True, stdout=subprocess.PIPE, text=True)
    return {tuple(fields[:2]): float(fields[2]) for fields in map(str.split, done.stdout.splitlines())}


def main():
    rounds, first, second = int(sys.argv[1]), sys.argv[2], sys.argv[3]
    ratios = collections.defaultdict(list)
    for n in range(rounds):
        if n % 2 == 0:
            a, b = rows(first), rows(second)
        else:
            b, a = rows(second), rows(first)
        for key in a.keys() & b.keys():
            ratios[key].append(b[key] / a[key])
    for (name, pass_name), values in sorted(ratios.items()):
        print(f"{name:16s} {pass_name:12s} {statistics.median(values):6.2f} [{min(values):.2f} {max(values):.2f}]")


main()
