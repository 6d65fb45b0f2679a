#!/usr/bin/python3
"""Imports a public ONNX model, plans it, and runs it forward on one rank and on two.

    public_model.py STRATPLAN FOLDER MODELS NAME     # MODELS/NAME.onnx, MODELS/NAME_output_0.pb

The output is compared with the recorded one. The input is arange(n) / n in single precision, and
the tolerances are the models' own. Exit code 0: the outputs agree; 1: they do not; 77: there is no
such model here.
"""

import json
import pathlib
import sys

try:
    import numpy
except ImportError as missing:
    print(f"skipped: {missing} (on Debian: apt-get install python3-numpy)")
    sys.exit(77)

sys.dont_write_bytecode = True  # keeps the source folder clean
import command
import wire

RELATIVE, ABSOLUTE = 1e-3, 1e-7


def main(program, folder, models, name):
    model, output = models / f"{name}.onnx", models / f"{name}_output_0.pb"
    if not model.is_file():
        print(f"skipped: there is no {model}")
        return 77
    folder.mkdir(parents=True, exist_ok=True)
    network, weights = folder / "network.json", folder / "weights.safetensors"
    told = command.run(program, "import", model, "-b", 1, "-o", network, "--weights", weights)
    assert "softmax at the end" in told, told
    layers = json.loads(network.read_text())["layers"]
    x = numpy.array([1, layers[0]["channels"], *layers[0]["size"]])
    x = (numpy.arange(x.prod()) / x.prod()).astype(numpy.float32).reshape(x)
    expected = wire.tensor(output.read_bytes())[1]
    failed = False
    for ranks, source in ((1, network), (2, model)):  # plans also accept the model itself
        actual = command.forward(
            program, folder, source, x, ranks, "--weights", weights, "--probabilities"
        )
        difference = command.worst(expected, actual, ABSOLUTE, RELATIVE)
        failed = failed or not difference <= 1
        print(
            f"{name} on {ranks} ranks: {len(layers)} layers, {actual.size} outputs, "
            f"worst difference {difference:.2g} of tolerance"
        )
    weights.unlink()  # takes hundreds of megabytes
    return int(failed)


if __name__ == "__main__":
    sys.exit(
        main(
            pathlib.Path(sys.argv[1]).resolve(),
            pathlib.Path(sys.argv[2]).resolve(),
            pathlib.Path(sys.argv[3]),
            sys.argv[4],
        )
    )
