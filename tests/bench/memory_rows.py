"""Holds predicted memory against published device memory of ResNet-50 under PyTorch.

    memory_rows.py STRATPLAN MEMORY.csv

Each row of the table ran on a card, with a batch chosen to fill it. For each row, the memory that
`plan --software pytorch-eager` predicts without its reserve must fit, must be at most the measured
memory in 9 of 10 rows, and must be at least 70 % of it in the median. At 1.5 times the batch, no row
may be called fitting. Prints one line per distinct row, and exits with 1 if a condition fails.
"""

import csv
import json
import statistics
import subprocess
import sys

MIB = 2**20
# What nvidia-smi reports as the total of each card, in MiB; a card without ECC's share has more.
CARDS = {
    "RTX 2070 with Max-Q Design": 8192,
    "RTX 2080 with Max-Q Design": 8192,
    "RTX 2080 Super with Max-Q Design": 8192,
    "RTX 3070": 8192,
    "RTX 3080": 10240,
    "GTX 1080 Ti": 11264,
    "RTX 2080 Ti": 11264,
    "RTX A4000": 16376,
    "RTX 3080 Laptop GPU": 16384,
    "Quadro RTX 5000": 16384,
    "RTX A4500": 20470,
    "RTX A5000": 24576,
    "RTX A5500": 24564,
    "Quadro RTX 6000": 24576,
    "Titan RTX": 24576,
    "TITAN RTX": 24576,
    "RTX 3090": 24576,
    "A100-PCIe-40GB": 40960,
    "A100-SXM-40GB": 40960,
    "A40": 46068,
    "Quadro RTX 8000": 49152,
    "RTX A6000": 49152,
    "A100-PCIe-80GB": 81920,
    "A100-SXM-80GB": 81920,
}


def card(row):
    """Returns the memory of the row's card in bytes. V100 and A100 have two sizes, P100 and V100
    start at 16 GiB."""
    sizes = [CARDS[row["device"]]] if row["device"] in CARDS else [16384, 24576, 32768, 40960, 81920]
    return next(size for size in sizes if size >= float(row["value"])) * MIB


def predict(program, batch, precision, limit):
    """Returns the plan document, or nothing if the batch was refused."""
    stored = "fp16" if precision in ("amp", "fp16") else "fp32"
    command = [program, "plan", "resnet50", "-m", "dgx-a100", "-n", "1", "-b", str(batch)]
    command += ["--precision", stored, "--software", "pytorch-eager", "--memory", f"{limit}B"]
    command += ["--accumulate", "1", "--sharding", "0", "--recompute", "none", "--json"]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode not in (0, 4):
        sys.exit(f"{' '.join(command)}: {run.stderr}")
    return json.loads(run.stdout) if run.returncode == 0 else None


def main():
    program, table = sys.argv[1:]
    rows = {}
    for row in csv.DictReader(open(table)):
        if row["network"].startswith("ResNet-50") and row["quantity"] == "peak_device_memory_nvidia_smi":
            key = (row["device"], card(row), row["precision"], int(row["batch_per_device"]))
            rows.setdefault(key, []).append(float(row["value"]) * MIB)
    refused, fitting, shares = [], [], []
    for (device, limit, precision, batch), values in sorted(rows.items()):
        plan = predict(program, batch, precision, limit)
        larger = predict(program, batch * 3 // 2, precision, limit)
        fit, fit_larger = (found["fit"] if found else "refused" for found in (plan, larger))
        if plan is None:
            refused.append(device)
        if larger and larger["fit"] == "fits":
            fitting.append(device)
        share = plan["memory_bytes"] / statistics.median(values) if plan else float("nan")
        shares += [plan["memory_bytes"] / value for value in values] if plan else []
        print(f"{device:34}{limit / MIB:7.0f} MiB {precision:5}{batch:5}  {share:5.2f}  {fit:15}"
              f"at 1.5 times the batch: {fit_larger}")
    below = sum(share <= 1 for share in shares) / len(shares)
    median = statistics.median(shares)
    print(f"{len(shares)} rows: {len(refused)} refused, at most the measured bytes in {below:.0%},"
          f" median share {median:.2f}, {len(fitting)} called fitting at 1.5 times the batch")
    sys.exit(bool(refused or fitting or below < 0.9 or median < 0.7))


if __name__ == "__main__":
    main()
