"""Runs the rounds of against_pytorch.sh: stratplan's plans and PyTorch's modes in turns.

Compares the least medians. A mode is compared with the plan that takes batch statistics over as
many samples: the whole batch, or under DDP the samples of one process.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
MODES = ["plain", "channels_last", "compile", "compile+channels_last", "ddp", "ddp+channels_last"]
RANKS = 2
# A mode that is so much slower than the fastest one in the first round is left out of later rounds.
HOPELESS = 1.25
CANNOT = 3


def shared_statistics(mode):
    return "ddp" not in mode


class Contest:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        source = pathlib.Path(options.network)
        if not source.exists():
            source = HERE.parent.parent / "networks" / f"{options.network}.json"
        self.document = json.loads(source.read_text())
        self.batch = options.batch or self.document["batch"]
        self.has_statistics = any(
            layer["kind"] == "batch_norm" for layer in self.document["layers"]
        )
        self.times = {}
        self.measured = set()
        self.planned = {}  # by file of a plan: its decompositions in words
        self.ours = options.uniform or "recommended"  # the plan that is compared with PyTorch

    def size(self, option):
        return [option, self.options.size] if self.options.size else []

    def network(self, statistics):
        file = self.folder / f"statistics-{statistics}.json"
        file.write_text(json.dumps({**self.document, "statistics_samples": statistics}))
        return file

    def plans(self, shared):
        """Returns the plans to run, by name, as files.

        shared: whether the whole batch shares the batch statistics, or each process has its own.
        """
        network = self.network(
            self.batch if shared or not self.has_statistics else self.batch // RANKS
        )
        wanted = {self.ours: ["--uniform", self.options.uniform] if self.options.uniform else []}
        if not self.options.uniform:
            self.measure(network)
        if self.options.sample:
            wanted["sample"] = ["--uniform", f"N{RANKS}"]
        files = {}
        for name, choice in wanted.items():
            files[name] = network.with_name(f"{name}-{network.name}")
            if not files[name].exists():
                text = self.stratplan(
                    "plan",
                    network,
                    "-n",
                    RANKS,
                    "-b",
                    self.batch,
                    *self.size("--input-size"),
                    *choice,
                    "--json",
                    "-o",
                    files[name],
                )
                self.planned[files[name]] = ", ".join(
                    sorted({layer["decomposition"] for layer in json.loads(text)["layers"]})
                )
        return files

    def measure(self, network):
        """Profiles the kernels that the machine's profile lacks for this network, once."""
        if network not in self.measured:
            self.stratplan(
                "profile", network, "-n", RANKS, "-b", self.batch, *self.size("--input-size")
            )
            self.measured.add(network)

    def stratplan(self, *arguments):
        command = [self.options.program, *map(str, arguments)]
        return subprocess.run(
            command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ).stdout

    def python(self, script, *arguments, threads=RANKS):
        environment = {
            **os.environ,
            "OMP_NUM_THREADS": str(threads),
            "OPENBLAS_NUM_THREADS": str(threads),
        }
        command = [
            self.options.python,
            str(HERE / script),
            str(self.network(self.batch)),
            "--batch",
            str(self.batch),
            *self.size("--size"),
            *arguments,
        ]
        return subprocess.run(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def run_plan(self, name, file):
        self.keep(
            name, self.stratplan("run", file, "-n", RANKS, "--steps", self.options.steps, "--json")
        )

    def run_mode(self, mode):
        ran = self.python(
            "pytorch_steps.py",
            "--mode",
            mode,
            "--steps",
            str(self.options.steps),
            threads=RANKS if shared_statistics(mode) else 1,
        )
        if ran.returncode == 0:
            # gloo may print lines of its own
            line = next(line for line in ran.stdout.splitlines() if line.startswith("{"))
            return self.keep(mode, line)
        reason = (
            "not in this PyTorch"
            if ran.returncode == CANNOT
            else (ran.stderr.strip().splitlines() or ["no reason given"])[-1]
        )
        print(f"PyTorch, {mode}: left out, {reason}", flush=True)
        return None

    def keep(self, name, text):
        median = json.loads(text)["step_seconds"]["median"]
        self.times.setdefault(name, []).append(median)
        return median

    def rounds(self):
        """Runs all rounds; returns the (plan's name as kept, mode) pairs to compare."""
        modes = [
            mode
            for mode in MODES
            if not self.options.modes or mode in self.options.modes.split(",")
        ]
        names = {}
        for index in range(self.options.rounds):
            for shared in sorted(
                {shared_statistics(mode) or not self.has_statistics for mode in modes}, reverse=True
            ):
                for name, file in self.plans(shared).items():
                    names[name, shared] = (
                        name if shared else f"{name}, statistics of {self.batch // RANKS}"
                    )
                    self.run_plan(names[name, shared], file)
            took = {mode: self.run_mode(mode) for mode in modes}
            modes = [
                mode
                for mode in modes
                if took[mode]
                and (
                    index > 0
                    or took[mode] <= HOPELESS * min(time for time in took.values() if time)
                )
            ]
            print(
                f"round {index + 1}: "
                + ", ".join(
                    f"{name} {times[-1]:.3f} s"
                    for name, times in self.times.items()
                    if len(times) > index
                ),
                flush=True,
            )
        return [
            (names[name, shared_statistics(mode) or not self.has_statistics], mode)
            for name in {name for name, _ in names}
            for mode in modes
        ]

    def least(self, name):
        return min(self.times[name])


def compared(contest, pairs):
    """Prints all ratios; returns the largest ratio of the recommended plan to a mode."""
    ratios = {pair: contest.least(pair[0]) / contest.least(pair[1]) for pair in sorted(pairs)}
    for (plan, mode), ratio in ratios.items():
        print(
            f"{plan:>34} {contest.least(plan):8.3f} s   "
            f"PyTorch {mode:<22} {contest.least(mode):8.3f} s   ratio {ratio:.2f}"
        )
    return max(ratio for (plan, _), ratio in ratios.items() if plan.startswith(contest.ours))


def tell_floor(contest):
    found = json.loads(contest.python("floor.py").stdout)
    ours = min(contest.least(name) for name in contest.times if name.startswith(contest.ours))
    print(
        f"floor: {found['flops'] / 1e9:.1f} GFLOP / "
        f"{found['sgemm_flops_per_s'] / 1e9:.1f} GFLOP/s (sgemm) + "
        f"{found['bytes'] / 1e9:.2f} GB / {found['copy_bytes_per_s'] / 1e9:.1f} GB/s (copy) = "
        f"{found['floor_seconds']:.3f} s; "
        f"stratplan takes {ours / found['floor_seconds']:.2f} times that"
    )


def main(options):
    with tempfile.TemporaryDirectory() as folder:
        contest = Contest(options, pathlib.Path(folder))
        ratio = compared(contest, contest.rounds())
        for file, decompositions in contest.planned.items():
            print(f"{file.stem}: {decompositions}")
        tell_floor(contest)
    print(f"ratio to PyTorch's best {ratio:.2f}, at most {options.most:.2f} wanted")
    return 0 if ratio <= options.most else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("network")
    parser.add_argument("--batch", type=int)
    parser.add_argument("--size", help="replaces the input's extents: 64,64,64")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument(
        "--modes", help=f"some of {', '.join(MODES)}; default: all that this PyTorch can run"
    )
    parser.add_argument(
        "--sample", action="store_true", help="run the sample-parallel plan as well"
    )
    parser.add_argument(
        "--uniform",
        help="run this decomposition of all layers instead of the recommended plan, for example "
        "N2; nothing is profiled then",
    )
    parser.add_argument("--most", type=float, default=0.8)
    parser.add_argument("--program", required=True)
    parser.add_argument("--python", default="/usr/bin/python3")
    sys.exit(main(parser.parse_args()))
