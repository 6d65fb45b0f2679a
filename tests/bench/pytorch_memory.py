#!/usr/bin/python3
"""Measures what PyTorch keeps in memory for the backward phase of a network.json, on the CPU.

    pytorch_memory.py NETWORK.json... --batch 8

Prints a line of JSON for each network. All sizes are bytes. A storage counts once, and scalars are left out.
    saved_bytes         tensors that the forward phase saves for the backward phase, besides
                        parameters, running statistics and the step's data; by hooks
    saved_state_bytes   saved parameters and running statistics
    saved_data_bytes    saved samples, labels and targets
    by_operator         saved_bytes by "operator.attribute" of the derivative, from autograd's
                        graph; of several that save a storage, one counts it
    forward_bytes       what is allocated at the end of the forward phase and was not before
    peak_bytes          the most that is allocated during the third step and was not before it;
                        parameters, momentum and data were
    resident_bytes      growth of the resident set from before the first step to its maximum in two
                        steps; parameters and data were there, momentum was not
    predicted_bytes, predicted_peak_bytes
                        saved_bytes and peak_bytes by the rules of saved_tensors.py; no peak with
                        --autocast
    parameter_bytes, running_bytes, data_bytes
With --check, exits with 1 if saved_bytes, by hooks or by operator, are not those predicted, and
with 77 if PyTorch is missing.
"""

import argparse
import json
import pathlib
import re
import sys

try:
    import torch
except ImportError as missing:
    print(f"skipped: {missing} (on Debian: apt-get install python3-torch)")
    sys.exit(77)

sys.path.append(str(pathlib.Path(__file__).parent.parent / "torch"))
from pytorch_network import Network, as_tuple, read
from saved_tensors import peak_bytes, saved_tensors

TINY = pathlib.Path(__file__).parents[2] / "networks/tiny.json"


def storage_of(tensor):
    """Returns (identity, bytes) of the tensor's storage. torch 1.13 has no untyped_storage."""
    made = tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage()
    return made.data_ptr(), made.nbytes()


def storages_of(tensors):
    return dict(map(storage_of, tensors))


def saved_by_hooks(forward):
    """Returns ({storage: bytes} of all tensors that `forward` saves, its result)."""
    kept = []

    def pack(tensor):
        if tensor.dim():
            kept.append(tensor.detach())  # holds the storage, so that no other has its address
        return tensor.detach()

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        result = forward()
    return storages_of(kept), result


def tensors_in(value):
    if isinstance(value, torch.Tensor):
        return [value]
    parts = value if isinstance(value, (list, tuple)) else ()
    return [tensor for part in parts for tensor in tensors_in(part)]


def nodes_behind(result):
    """Returns the nodes of autograd's graph, in forward order where this PyTorch tells it."""
    found, stack = set(), [result.grad_fn]
    while stack:
        node = stack.pop()
        if node is not None and node not in found:
            found.add(node)
            stack += [before for before, _ in node.next_functions]
    return sorted(found, key=lambda node: getattr(node, "_sequence_nr", int)())


def saved_by_operators(result):
    """Yields (operator.attribute, saved tensor) of the graph behind `result`."""
    for node in nodes_behind(result):
        operator = re.sub(r"Backward\d+$", "", node.name())
        for attribute in dir(node):
            if not attribute.startswith("_saved_"):
                continue
            for tensor in tensors_in(getattr(node, attribute)):
                if tensor.dim():
                    yield f"{operator}.{attribute[len('_saved_'):]}", tensor


def by_operator(result, left_out):
    found, counted = {}, set(left_out)
    for name, tensor in saved_by_operators(result):
        storage, size = storage_of(tensor)
        if storage not in counted:
            counted.add(storage)
            found[name] = found.get(name, 0) + size
    return dict(sorted(found.items(), key=lambda entry: -entry[1]))


def allocated(run):
    """Returns how much more is allocated at the end of `run`, the most in between, its result."""
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True
    ) as profile:
        result = run()
    events = [e for e in profile.profiler.kineto_results.events() if e.name() == "[memory]"]
    time = (lambda e: e.start_ns()) if hasattr(events[0], "start_ns") else (lambda e: e.start_us())
    now = most = 0
    for event in sorted(events, key=time):
        now += event.nbytes()
        most = max(most, now)
    return now, most, result


def status(key):
    text = pathlib.Path("/proc/self/status").read_text()
    return int(re.search(rf"{key}:\s+(\d+) kB", text)[1]) * 1024


def resident(run):
    """Returns how far the resident set grows during `run`."""
    pathlib.Path("/proc/self/clear_refs").write_text("5")  # forgets the greatest set so far
    before = status("VmRSS")
    run()
    return status("VmHWM") - before


class Training:
    """A network with its data and its optimizer."""

    def __init__(self, document, autocast=False):
        self.autocast = autocast
        self.network = Network(document)
        self.x, self.wanted = self.network.random_data(document["batch"])
        self.optimizer = torch.optim.SGD(self.network.parameters(), lr=0.01, momentum=0.9)

    def forward(self):
        if not self.autocast:
            return self.network.loss(self.network(self.x), self.wanted)
        with torch.autocast("cpu", torch.bfloat16):
            return self.network.loss(self.network(self.x), self.wanted)

    def rest(self, loss):
        loss.backward()
        self.update()

    def update(self):
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)

    def steps(self, number):
        for _ in range(number):
            self.rest(self.forward())

    def state(self):
        return storages_of([*self.network.parameters(), *self.network.buffers()])

    def data(self):
        return storages_of([*as_tuple(self.x), *as_tuple(self.wanted)])


def measured(document, autocast):
    torch.manual_seed(1)
    Training(read(TINY)).steps(1)  # loads libraries
    training = Training(document, autocast)
    resident_bytes = resident(lambda: training.steps(2))
    state, data = training.state(), training.data()
    saved, _ = saved_by_hooks(training.forward)
    after_forward, most_forward, loss = allocated(training.forward)
    operators = by_operator(loss, {**state, **data})
    _, most_rest, _ = allocated(lambda: training.rest(loss))
    case = training.network, document["batch"], torch.__version__, autocast
    return {
        "saved_bytes": sum(size for key, size in saved.items() if key not in {**state, **data}),
        "saved_state_bytes": sum(saved[key] for key in saved.keys() & state.keys()),
        "saved_data_bytes": sum(saved[key] for key in saved.keys() & data.keys()),
        "by_operator": operators,
        "predicted_bytes": sum(saved.bytes for saved in saved_tensors(*case)),
        "predicted_peak_bytes": None if autocast else peak_bytes(*case[:3]),
        "forward_bytes": after_forward,
        "peak_bytes": max(most_forward, after_forward + most_rest),
        "resident_bytes": resident_bytes,
        "parameter_bytes": sum(p.numel() * p.element_size() for p in training.network.parameters()),
        "running_bytes": sum(b.numel() * b.element_size() for b in training.network.buffers()),
        "data_bytes": sum(data.values()),
    }


def agrees(found):
    sizes = {found["saved_bytes"], found["predicted_bytes"], sum(found["by_operator"].values())}
    return len(sizes) == 1


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("networks", nargs="+")
    parser.add_argument("--batch", type=int)
    parser.add_argument("--size", type=lambda text: [int(extent) for extent in text.split(",")])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--autocast", action="store_true", help="to bfloat16")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    wrong = 0
    for path in options.networks:
        document = read(path, options.batch, options.size)
        found = measured(document, options.autocast)
        print(json.dumps({"network": document["name"], "torch": torch.__version__, **found}))
        wrong += not agrees(found)
    sys.exit(bool(options.check and wrong))


if __name__ == "__main__":
    main()
