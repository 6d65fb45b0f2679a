"""Times training steps of a network.json in PyTorch on random data.

    pytorch_steps.py NETWORK.json --batch 8 --mode plain --steps 8

A mode is a list of words joined by '+'.
    plain          one process, 2 threads
    channels_last  activations and weights lie channels last
    compile        torch.compile (2.x)
    ddp            two processes of one thread under DistributedDataParallel over gloo; each has
                   half of the batch, over which it takes its batch statistics
    cuda           on a GPU, with all of cuDNN's algorithms tried (benchmark, benchmark_limit 0)
    tf32           allows TF32
    bf16           runs under autocast
    graph          captures the whole step in a CUDA graph
Forward, loss, backward (with the all-reduce of gradients) and SGD with momentum are timed, on the
slowest process. Prints {"step_seconds": {"median", "min", "samples"}, "torch": version}. Exits with
3 if this PyTorch cannot run the mode.
"""

import argparse
import contextlib
import functools
import json
import os
import pathlib
import statistics
import sys
import time

import torch

sys.path.append(str(pathlib.Path(__file__).parent.parent / "torch"))
from pytorch_network import Network, read


def channels_last(axes):
    return torch.channels_last if axes == 2 else torch.channels_last_3d


def prepared(document, mode, samples):
    """Returns the module in this mode, and its data."""
    network = Network(document)
    x, wanted = network.random_data(samples)
    if "channels_last" in mode:
        network = network.to(memory_format=channels_last(network.axes))
        x = x.contiguous(memory_format=channels_last(network.axes))
        if wanted.dim() == x.dim():
            wanted = wanted.contiguous(memory_format=channels_last(network.axes))
    if "cuda" in mode:
        network, x, wanted = network.cuda(), x.cuda(), wanted.cuda()
    return network, x, wanted


def captured(step):
    """Returns the step as a CUDA graph, after the warm-up on another stream that PyTorch needs."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def times(model, loss, x, wanted, options, mode, barrier):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    # Without a GPU, some versions refuse even an autocast that is not enabled, so none is made.
    narrow = (
        functools.partial(torch.autocast, "cuda", torch.bfloat16)
        if "bf16" in mode
        else contextlib.nullcontext
    )

    def step():
        optimizer.zero_grad(set_to_none=True)
        with narrow():
            value = loss(model(x), wanted)
        value.backward()
        optimizer.step()

    run = captured(step) if "graph" in mode else step
    seconds = []
    for _ in range(options.warmup + options.steps):
        barrier()
        start = time.perf_counter()
        run()
        barrier()
        seconds.append(time.perf_counter() - start)
    return seconds[options.warmup :]


def train(rank, options, processes):
    torch.set_num_threads(options.threads // processes)
    torch.manual_seed(rank)
    mode = options.mode.split("+")
    document = read(options.network, options.batch, options.size)
    network, x, wanted = prepared(document, mode, document["batch"] // processes)
    model, barrier = network, torch.cuda.synchronize if "cuda" in mode else lambda: None
    if "cuda" in mode:
        torch.backends.cudnn.benchmark = True
        torch.backends.cudnn.benchmark_limit = 0
        torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = "tf32" in mode
    if processes > 1:
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(options.port))
        os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[rank]})
        torch.distributed.init_process_group("gloo", rank=rank, world_size=processes)
        model, barrier = (
            torch.nn.parallel.DistributedDataParallel(network),
            torch.distributed.barrier,
        )
    if "compile" in mode:
        model = torch.compile(model)
    seconds = times(model, network.loss, x, wanted, options, mode, barrier)
    if rank == 0:
        step = {"median": statistics.median(seconds), "min": min(seconds), "samples": seconds}
        print(json.dumps({"step_seconds": step, "torch": torch.__version__}), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("network")
    parser.add_argument("--batch", type=int)
    parser.add_argument("--size", type=lambda text: [int(extent) for extent in text.split(",")])
    parser.add_argument("--mode", default="plain")
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--warmup", type=int, default=2, help="steps before those")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--port", type=int, default=29533)
    options = parser.parse_args()
    if ("compile" in options.mode and not hasattr(torch, "compile")) or (
        "cuda" in options.mode and not torch.cuda.is_available()
    ):
        sys.exit(3)
    if "ddp" in options.mode:
        torch.multiprocessing.spawn(train, (options, options.threads), options.threads)
    else:
        train(0, options, 1)


if __name__ == "__main__":
    main()
