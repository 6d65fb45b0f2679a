"""Judges the two results folders that slow_link_accuracy.sh made by `stratplan autotune`.

slow_link_accuracy.py STRATPLAN FOLDER      FOLDER holds shared-memory/ and slow-link/
"""

import json
import pathlib
import subprocess
import sys

SHARE, ERROR, REGRET = 0.20, 0.15, 0.05


def ask(stratplan, *arguments):
    return json.loads(
        subprocess.run(
            [stratplan, *arguments, "--json"], capture_output=True, text=True, check=True
        ).stdout
    )


def with_free_links(machine, file):
    """Writes the same machine with messages and collectives at no cost; returns the file."""
    profile = json.loads(machine.read_text())
    for table in [profile["one_way"], profile["both_ways"], *profile["collectives"].values()]:
        for point in table:
            point.update(
                {
                    key: 0.0
                    for key in ("median_seconds", "p10_seconds", "p90_seconds")
                    if key in point
                }
            )
    file.write_text(json.dumps(profile))
    return file


def compared(stratplan, folder):
    """Returns [{name, predicted, free, measured}] of the measured plans, the recommended first.

    All values are seconds. free: predicted with communication at no cost.
    """
    machine = folder / "machine.json"
    free = with_free_links(machine, folder / "free-links.json")
    measured = json.loads((folder / "measurements.json").read_text())["plans"]
    plans = []
    for plan in [folder / "plan.json", *sorted(folder.glob("plans/*/plan.json"))]:
        timings = plan.parent / "timings.json"
        if not timings.exists():
            continue
        found = ask(stratplan, "compare", plan, timings, "--machine", machine)
        plans.append(
            {
                "name": found["name"],
                "predicted": found["predicted_step_seconds"],
                "free": ask(stratplan, "predict", plan, "--machine", free)[
                    "predicted_step_seconds"
                ],
                "measured": measured[found["name"]]["median_seconds"],
            }
        )
    return plans


def decided(folder):
    plan = json.loads((folder / "plan.json").read_text())
    return plan["ranks"], plan["layers"]


def error(plan, of="predicted"):
    return plan[of] / plan["measured"] - 1


def share(plan):
    return 1 - plan["free"] / plan["predicted"]


def main(stratplan, folder):
    failures = []
    for link in ("shared-memory", "slow-link"):
        plans = compared(stratplan, folder / link)
        print(
            f"{link}\n  {'plan':<18} {'predicted ms':>12} {'measured ms':>12} "
            f"{'communication':>13} {'error':>8} {'without':>8}"
        )
        for plan in plans:
            print(
                f"  {plan['name']:<18} {plan['predicted'] * 1e3:12.1f} "
                f"{plan['measured'] * 1e3:12.1f} "
                f"{share(plan):13.1%} {error(plan):+8.1%} {error(plan, 'free'):+8.1%}"
            )
        best = min(plan["measured"] for plan in plans)
        regret = plans[0]["measured"] / best - 1
        print(f"  '{plans[0]['name']}' is {regret:.1%} slower than the fastest as measured")
        if regret > REGRET:
            failures.append(f"{link}: regret {regret:.1%}")
        if link == "slow-link":
            talkative = [plan for plan in plans if share(plan) >= SHARE]
            worst = max((abs(error(plan)) for plan in talkative), default=None)
            if worst is None:
                failures.append("no plan communicates enough")
            elif worst > ERROR:
                failures.append(f"worst error {worst:.1%}")
            elif max(abs(error(plan, "free")) for plan in talkative) <= ERROR:
                failures.append(
                    "predictions without communication are as accurate, so this check shows nothing"
                )
    if decided(folder / "shared-memory") == decided(folder / "slow-link"):
        failures.append("both links have the same best plan")
    print("; ".join(failures) or "ok")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], pathlib.Path(sys.argv[2])))
