#!/usr/bin/python3
"""The peer of bench/pool.cpp: pooling with PyTorch on one thread, the same rows."""
import sys

import torch

from torch_timing import best

CASES = [  # name, N, C, H, kernel, stride, padding
    ("k2_s2_56", 8, 64, 56, 2, 2, 0),
    ("k3_s2_56", 8, 64, 56, 3, 2, 1),
    ("k3_s1_56", 8, 64, 56, 3, 1, 1),
    ("k2_s2_14", 8, 256, 14, 2, 2, 0),
    ("k3_s2_14", 8, 256, 14, 3, 2, 1),
    ("k3_s1_14", 8, 256, 14, 3, 1, 1),
]


def main():
    only = sys.argv[1] if len(sys.argv) > 1 else ""
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 0.25
    torch.set_num_threads(1)
    aten = torch.ops.aten
    for name, n, c, h, k, s, p in CASES:
        if only not in name:
            continue
        x = torch.randn(n, c, h, h)
        window = [k, k], [s, s], [p, p]
        with torch.no_grad():
            largest, places = aten.max_pool2d_with_indices(x, *window)
            dy = torch.randn_like(largest)
            for pass_name, f in (
                ("max", lambda: aten.max_pool2d_with_indices(x, *window)),
                ("max_grad", lambda: aten.max_pool2d_with_indices_backward(dy, x, *window, [1, 1], False, places)),
                ("avg", lambda: aten.avg_pool2d(x, *window)),
                ("avg_grad", lambda: aten.avg_pool2d_backward(dy, x, *window, False, True, None)),
            ):
                t = best(f, seconds)
                gigabytes = 4e-9 * (x.numel() + dy.numel())
                print(f"{name:16s} {pass_name:12s} {t * 1e3:9.3f} ms {gigabytes / t:8.1f} GB/s", flush=True)


main()
