"""What the checks of imported models share: the command line, and the comparison of outputs."""
import subprocess
import sys

import numpy


def run(program, *arguments):
    """Standard error of a command that succeeds."""
    command = [str(argument) for argument in (program, *arguments)]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode:
        sys.exit(f"{' '.join(command)}: exit code {result.returncode}\n{result.stderr}")
    return result.stderr


def forward(program, folder, network, x, ranks, *options, batch=None):
    """What the network makes of x, by the plan for so many ranks."""
    plan, given, made = folder / f"plan{ranks}.json", folder / "x.npy", folder / "y.npy"
    numpy.save(given, x)
    run(program, "plan", network, "-n", ranks, "-b", batch or len(x), "-o", plan)
    run(program, "launch", plan, "--forward", "--data", given, "-o", made, *options)
    return numpy.load(made)


def worst(expected, actual, absolute, relative):
    """The greatest difference in units of what is tolerated: at most 1 is well."""
    if expected.size != actual.size:
        sys.exit(f"{actual.shape} where {expected.shape} was expected")
    expected = expected.reshape(actual.shape).astype(float)
    return float((abs(expected - actual) / (absolute + relative * abs(expected))).max())
