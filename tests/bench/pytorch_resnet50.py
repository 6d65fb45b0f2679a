"""ResNet-50 (v1.5) training steps in PyTorch on random data, for comparison: DistributedDataParallel over gloo, one thread a process.

    pytorch_resnet50.py --processes 2 --batch 8 --steps 8

Prints one JSON object: {"step_seconds": {"median", "min", "samples"}, "torch": version}. The batch is shared evenly by the processes; batch
normalization takes its statistics over each process's samples. Forward, loss, backward (with the gradient all-reduce) and SGD with momentum are timed.
"""
import argparse
import json
import os
import statistics
import time

import torch
from torch import nn
from torch.nn import functional as F


def conv_norm(inputs, outputs, kernel, stride=1):
    return nn.Sequential(nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False), nn.BatchNorm2d(outputs))


class Bottleneck(nn.Module):
    def __init__(self, inputs, width, stride):
        super().__init__()
        outputs = 4 * width
        self.reduce, self.spatial, self.expand = conv_norm(inputs, width, 1), conv_norm(width, width, 3, stride), conv_norm(width, outputs, 1)
        self.shortcut = conv_norm(inputs, outputs, 1, stride) if stride != 1 or inputs != outputs else nn.Identity()

    def forward(self, x):
        y = F.relu(self.spatial(F.relu(self.reduce(x))))
        return F.relu(self.expand(y) + self.shortcut(x))


def resnet50():
    layers, channels = [conv_norm(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)], 64
    for width, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for i in range(count):
            layers.append(Bottleneck(channels, width, stride if i == 0 else 1))
            channels = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 1000))


def train(rank, options):
    torch.set_num_threads(1)
    torch.manual_seed(rank)
    parallel = options.processes > 1
    if parallel:
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(options.port))
        os.sched_setaffinity(0, {rank})
        torch.distributed.init_process_group("gloo", rank=rank, world_size=options.processes)
    model = resnet50()
    if parallel:
        model = nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    samples = options.batch // options.processes
    x, labels = torch.randn(samples, 3, 224, 224), torch.randint(0, 1000, (samples,))
    seconds = []
    for _ in range(options.steps + 2):
        if parallel:
            torch.distributed.barrier()
        start = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(model(x), labels).backward()
        optimizer.step()
        seconds.append(time.perf_counter() - start)
    seconds = seconds[2:]
    if rank == 0:
        print(json.dumps({"step_seconds": {"median": statistics.median(seconds), "min": min(seconds), "samples": seconds}, "torch": torch.__version__}), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--port", type=int, default=29533)
    options = parser.parse_args()
    if options.processes > 1:
        torch.multiprocessing.spawn(train, (options,), options.processes)
    else:
        train(0, options)
