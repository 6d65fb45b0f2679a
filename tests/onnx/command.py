"""Shared by the checks of imported models: the command line, and the comparison of outputs."""
import subprocess
import sys

import numpy


def run(program, *arguments):
    """Runs a command that must succeed; returns its standard error."""
    command = [str(argument) for argument in (program, *arguments)]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode:
        sys.exit(f"{' '.join(command)}: exit code {result.returncode}\n{result.stderr}")
    return result.stderr


def forward(program, folder, network, x, ranks, *options, batch=None):
    """Returns the network's output for x, computed with a plan for so many ranks."""
    plan, given, made = folder / f"plan{ranks}.json", folder / "x.npy", folder / "y.npy"
    numpy.save(given, x)
    run(program, "plan", network, "-n", ranks, "-b", batch or len(x), "-o", plan)
    run(program, "launch", plan, "--forward", "--data", given, "-o", made, *options)
    return numpy.load(made)


def worst(expected, actual, absolute, relative):
    """Returns the greatest difference in units of the tolerance: at most 1 passes."""
    if expected.size != actual.size:
        sys.exit(f"expected an output of shape {expected.shape}, found {actual.shape}")
    expected = expected.reshape(actual.shape).astype(float)
    return float((abs(expected - actual) / (absolute + relative * abs(expected))).max())
