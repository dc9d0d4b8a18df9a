"""Training steps of PyTorch, for comparison with `lamina train`: step_torch.py MODEL BATCH THREADS STEPS.

MODEL: mlp (3072-4096x3-10) or resnet20 (CIFAR form, 32 px). Prints the median step in milliseconds."""
import sys
import time

import torch
from torch import nn

name, batch, threads, steps = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
torch.set_num_threads(threads)
torch.manual_seed(0)


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.branch = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(),
            nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs))
        self.shortcut = nn.Identity() if stride == 1 and inputs == outputs else nn.Sequential(
            nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        return torch.relu(self.branch(x) + self.shortcut(x))


if name == "mlp":
    layers, width = [], 3072
    for _ in range(3):
        layers += [nn.Linear(width, 4096), nn.ReLU()]
        width = 4096
    model = nn.Sequential(*layers, nn.Linear(width, 10))
    x = torch.randn(batch, 3072)
else:
    layers, width = [nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU()], 16
    for group, out in enumerate((16, 32, 64)):
        for i in range(3):
            layers.append(Block(width, out, 2 if group > 0 and i == 0 else 1))
            width = out
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))
    x = torch.randn(batch, 3, 32, 32)
labels = torch.randint(0, 10, (batch,))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
times = []
for _ in range(steps):
    start = time.perf_counter()
    loss = nn.functional.cross_entropy(model(x), labels)
    loss.item()
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    times.append(time.perf_counter() - start)
print(f"{1000 * sorted(times)[len(times) // 2]:.1f}")
