#!/usr/bin/python3
"""Runs the public ONNX operator cases, which judge the layers of every backend that was built.

    operator_cases.py RUN_LAYERS FOLDER CASES

CASES is /usr/share/libonnx-testdata/data in Debian's libonnx-testdata. Each case is a model of one
operator with recorded inputs and outputs. If a layer computes the operator, translate.py writes the
case as a network of that layer into FOLDER. RUN_LAYERS runs the networks, and their outputs are
compared with the recorded ones. Cases that no layer expresses are listed with the reason.
Exit code 0: all other cases agree; 1: some do not; 77: there are no cases here.
"""

import collections
import json
import pathlib
import struct
import subprocess
import sys

try:
    import numpy
except ImportError as missing:
    print(f"skipped: {missing} (on Debian: apt-get install python3-numpy)")
    sys.exit(77)

sys.dont_write_bytecode = True  # keeps the source folder clean
import wire
from translate import OPERATORS, Inexpressible, need, translate

# Relative, in the Euclidean norm. Recorded values are rounded to single precision, and some were
# computed in it.
TOLERANCE = 2e-6

# Operators that move no element, or that can be evaluated before anything is run.
VIEWS = {
    "Constant": lambda a: a["value"],
    "Identity": lambda a, x: x,
    "Transpose": lambda a, x: x.transpose(a.get("perm")),
    "Unsqueeze": lambda a, x, axes=None: numpy.expand_dims(
        x, tuple(a["axes"] if axes is None else axes.tolist())
    ),
    "Squeeze": lambda a, x, axes=None: numpy.squeeze(
        x, tuple(a["axes"] if axes is None else axes.tolist())
    ),
}


def read_case(folder):
    """Returns the model, the known values by name (constants and inputs), and the outputs."""
    model = wire.model(folder / "model.onnx")
    data = folder / "test_data_set_0"
    known = dict(model.constants)
    for i, name in enumerate(model.inputs):
        known[name] = wire.tensor((data / f"input_{i}.pb").read_bytes())[1]
    outputs = [
        wire.tensor((data / f"output_{i}.pb").read_bytes())[1] for i in range(len(model.outputs))
    ]
    return model, known, outputs


def express(model, known):
    """Returns the one operator that remains once views are evaluated."""
    known = {"": None} | known
    found = None
    for node in model.nodes:
        if node.operator in VIEWS:
            if all(name in known for name in node.inputs):
                known[node.outputs[0]] = VIEWS[node.operator](
                    node.attributes, *(known[name] for name in node.inputs)
                )
            continue  # a view of the operator's output: the same elements
        need(
            node.operator in OPERATORS,
            f"no layer computes {node.operator}, which the model also has",
        )
        need(found is None, "several operators in one model")
        found = translate(node, [known[name] for name in node.inputs], model.opset)
    return found


def network_of(name, layer):
    """Returns the layer between its inputs and a loss, as network.json."""
    sources = [f"x{i}" for i in range(len(layer.x))]
    layers = [
        {"name": source, "kind": "input", "channels": x.shape[1], "size": list(x.shape[2:])}
        for source, x in zip(sources, layer.x)
    ]
    reads = {"inputs": sources} if len(sources) > 1 else {}
    layers.append({"name": "layer", "kind": layer.kind, **reads, **layer.attributes})
    if layer.labels is None:
        layers.append({"name": "loss", "kind": "mean_squared_error"})
    running = {"running_momentum": layer.momentum} if layer.momentum else {}
    return {
        "schema_version": 1,
        "name": name,
        "batch": layer.x[0].shape[0],
        "statistics_samples": "all",
        **running,
        "layers": layers,
    }


def five_axes(x):
    return x if x.ndim == 5 else x.reshape(*x.shape[:2], 1, *x.shape[2:])


def tensors_of(layer):
    tensors = {f"x{i}": five_axes(x) for i, x in enumerate(layer.x)}
    tensors |= {
        f"layer.{name}": five_axes(value) if value.ndim > 1 else value
        for name, value in (layer.parameters | (layer.running or {})).items()
    }
    return tensors | ({} if layer.labels is None else {"labels": five_axes(layer.labels)})


def expected_of(layer, outputs):
    """Returns the expected outputs by name, and the recorded outputs that are not compared."""
    if layer.labels is not None:
        return {"loss": outputs[0]}, outputs[1:]
    if layer.inference or layer.running is None:
        return {"y": outputs[0]}, outputs[1:]
    # Training. ONNX keeps the population's running variance; stratplan, like PyTorch, the unbiased
    # one.
    x, m, old = layer.x[0], layer.momentum, layer.running["running_var"].astype(float)
    terms = x.size / x.shape[1]
    population = (outputs[2] - (1 - m) * old) / m
    return {
        "y": outputs[0],
        "layer.running_mean": outputs[1],
        "layer.running_var": (1 - m) * old + m * population * terms / (terms - 1),
    }, outputs[3:]


def write_safetensors(path, tensors):
    header, offset = {}, 0
    for name, value in tensors.items():
        header[name] = {
            "dtype": "F32",
            "shape": list(value.shape),
            "data_offsets": [offset, offset + 4 * value.size],
        }
        offset += 4 * value.size
    text = json.dumps(header).encode()
    path.write_bytes(
        struct.pack("<Q", len(text))
        + text
        + b"".join(numpy.ascontiguousarray(value, "<f4").tobytes() for value in tensors.values())
    )


def read_safetensors(path):
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    entries = json.loads(data[8 : 8 + length])
    return {
        name: numpy.frombuffer(data, "<f4", (end - begin) // 4, 8 + length + begin)
        for name, (begin, end) in (
            (name, entry["data_offsets"])
            for name, entry in entries.items()
            if name != "__metadata__"
        )
    }


def collect(cases, folder):
    """Writes the cases that can be run.

    Returns the expected outputs by case, the reasons why others cannot be run by case, and the
    number of cases of other operators.
    """
    expected, reasons, others = {}, {}, 0
    for path in sorted(model.parent for model in cases.glob("*/*/model.onnx")):
        name = f"{path.parent.name}.{path.name}"
        operators = {node.operator for node in wire.model(path / "model.onnx").nodes}
        if not operators & set(OPERATORS) or path.name.endswith("_expanded"):
            others += 1
            continue
        try:
            model, known, outputs = read_case(path)
            layer = express(model, known)
        except Inexpressible as reason:
            reasons[name] = str(reason)
            continue
        expected[name], unused = expected_of(layer, outputs)
        if unused:
            print(f"{name}: compares the first outputs, not the other {len(unused)}")
        (folder / name).mkdir(exist_ok=True)
        (folder / name / "network.json").write_text(json.dumps(network_of(name, layer), indent=1))
        write_safetensors(folder / name / "tensors.safetensors", tensors_of(layer))
        (folder / name / "inference").unlink(missing_ok=True)
        if layer.inference:
            (folder / name / "inference").touch()
    return expected, reasons, others


def difference(expected, actual):
    assert expected.size == actual.size, f"{actual.size} elements, recorded are {expected.size}"
    expected = expected.reshape(-1).astype(float)
    nowhere = numpy.isnan(expected)  # roots of negative elements must be NaN in both
    if (nowhere != numpy.isnan(actual)).any():
        return numpy.nan
    expected, actual = expected[~nowhere], actual[~nowhere]
    return numpy.linalg.norm(expected - actual) / max(numpy.linalg.norm(expected), 1e-30)


def main(program, folder, cases):
    if not cases.is_dir():
        print(f"skipped: there is no {cases} (on Debian: apt-get install libonnx-testdata)")
        return 77
    expected, reasons, others = collect(cases, folder)
    (folder / "cases.txt").write_text("".join(name + "\n" for name in expected))
    subprocess.run([program, folder], check=True)
    results = json.loads((folder / "results.json").read_text())
    for name, reason in results["rejected"].items():
        reasons[name] = reason
        del expected[name]
    values = read_safetensors(folder / "results.safetensors")
    wrong = 0
    for backend in results["backends"]:
        failed, worst = set(), 0.0
        for name, outputs in expected.items():
            for output, recorded in outputs.items():
                found = difference(recorded, values[f"{backend}/{name}/{output}"])
                worst = max(worst, found)
                if not found <= TOLERANCE:
                    failed.add(name)
                    print(f"{backend}: {name}: {output} differs by {found:.1e}")
        wrong += len(failed)
        print(
            f"{backend}: {len(expected)} cases run, {len(expected) - len(failed)} passed, "
            f"worst difference {worst:.1e}"
        )
    print(f"{len(reasons)} cases that no layer expresses:")
    for reason, count in sorted(collections.Counter(reasons.values()).items()):
        print(
            f"  {count:3} {reason}: "
            f"{', '.join(name for name in reasons if reasons[name] == reason)}"
        )
    print(f"{others} cases of other operators, or expanded into other operators")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(
        main(
            pathlib.Path(sys.argv[1]).resolve(),
            pathlib.Path(sys.argv[2]).resolve(),
            pathlib.Path(sys.argv[3]),
        )
    )
