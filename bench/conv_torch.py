#!/usr/bin/python3
"""The peer of bench/conv.cpp: convolution with PyTorch on one thread. Rows: name, pass, milliseconds of processor
time (minimum of the repeats), GFLOP/s. Instruction sets are limited with ONEDNN_MAX_CPU_ISA=AVX2 ATEN_CPU_CAPABILITY=avx2."""
import os
import sys

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS"):
    os.environ[variable] = "1"  # set_num_threads does not reach the BLAS

import torch

from torch_timing import best

CASES = [  # name, N, C, H, O, kernel, stride, padding, groups
    ("stem1_28", 64, 1, 28, 16, 3, 1, 1, 1),
    ("stem3_32", 64, 3, 32, 16, 3, 1, 1, 1),
    ("c16_32", 64, 16, 32, 16, 3, 1, 1, 1),
    ("c16_28", 64, 16, 28, 16, 3, 1, 1, 1),
    ("c16_c32_s2", 64, 16, 32, 32, 3, 2, 1, 1),
    ("c32_16", 64, 32, 16, 32, 3, 1, 1, 1),
    ("c32_c64_s2", 64, 32, 16, 64, 3, 2, 1, 1),
    ("c64_8", 64, 64, 8, 64, 3, 1, 1, 1),
    ("c64_7", 64, 64, 7, 64, 3, 1, 1, 1),
    ("c64_56", 8, 64, 56, 64, 3, 1, 1, 1),
    ("p256_64", 8, 256, 56, 64, 1, 1, 0, 1),
    ("p16_c32_s2", 64, 16, 32, 32, 1, 2, 0, 1),
    ("c512_7", 8, 512, 7, 512, 3, 1, 1, 1),
    ("depthwise64_28", 16, 64, 28, 64, 3, 1, 1, 64),
]


def main():
    only = sys.argv[1] if len(sys.argv) > 1 else ""
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 0.25
    torch.set_num_threads(1)
    back = torch.ops.aten.convolution_backward
    for name, n, c, h, o, k, s, p, g in CASES:
        if only not in name:
            continue
        x, w = torch.randn(n, c, h, h), torch.randn(o, c // g, k, k)
        forward = lambda: torch.nn.functional.conv2d(x, w, None, s, p, 1, g)
        with torch.no_grad():
            dy = torch.randn_like(forward())
            args = (dy, x, w, [0], [s, s], [p, p], [1, 1], False, [0, 0], g)
            flops = 2 * dy.numel() * (c // g) * k * k
            for pass_name, f in (("forward", forward), ("input_grad", lambda: back(*args, [True, False, False])),
                                 ("weight_grad", lambda: back(*args, [False, True, False]))):
                t = best(f, seconds)
                print(f"{name:16s} {pass_name:12s} {t * 1e3:9.3f} ms {flops / t * 1e-9:8.1f} GFLOP/s", flush=True)


main()
