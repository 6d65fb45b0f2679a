#!/usr/bin/env python3
"""Checks a trace that `stratplan trace` wrote.

    check_trace.py TRACE [TIMINGS]

The trace is right if
  - every process and thread with events has a name and a place in the order
  - slices of one thread follow each other or nest
  - each arrow has one start and one end, both inside a slice, and does not point back in time by
    more than the ranks' clocks can be off each other
  - counters and slices begin no earlier than the trace, and no time is negative
  - with TIMINGS: the slices of the measured ranks are the ops of the file, with its times, and the
    sums by rank and kind equal those of the file

Prints the number of events checked. Exits with 1 and the first error.
"""

import collections
import json
import sys

HALF_UNIT = 1e-3  # microseconds: printed numbers are exact to a nanosecond


def fail(text):
    sys.exit(f"wrong trace: {text}")


def names(events):
    """The metadata by (process, thread, kind); fails if one is stated twice."""
    found = {}
    for event in events:
        if event["ph"] != "M":
            continue
        key = event["pid"], event["tid"], event["name"]
        if key in found:
            fail(f"two {event['name']} of process {event['pid']}")
        found[key] = next(iter(event["args"].values()))
    return found


def check_names(events, described):
    for event in events:
        if event["ph"] == "M":
            continue
        needed = [(event["pid"], 0, "process_name"), (event["pid"], 0, "process_sort_index")]
        if event["ph"] == "X":
            for kind in ("thread_name", "thread_sort_index"):
                needed.append((event["pid"], event["tid"], kind))
        for key in needed:
            if key not in described:
                fail(f"no {key[2]} for process {key[0]}, thread {key[1]}")


def check_nesting(slices):
    for thread, of_thread in slices.items():
        open_ends = []
        for event in sorted(of_thread, key=lambda e: (e["ts"], -e["dur"])):
            if event["ts"] < 0 or event["dur"] < 0:
                fail(f"negative time in {event}")
            while open_ends and open_ends[-1] <= event["ts"] + HALF_UNIT:
                open_ends.pop()
            end = event["ts"] + event["dur"]
            if open_ends and end > open_ends[-1] + HALF_UNIT:
                fail(f"{event['name']} of thread {thread} overlaps the slice around it")
            open_ends.append(end)


def check_arrows(events, slices, slack):
    ends = collections.defaultdict(dict)
    for event in events:
        if event["ph"] in "sf":
            if event["ph"] in ends[event["id"]]:
                fail(f"arrow {event['id']} has two {event['ph']}")
            ends[event["id"]][event["ph"]] = event
    for number, arrow in ends.items():
        if len(arrow) != 2:
            fail(f"arrow {number} lacks an end")
        for event in arrow.values():
            inside = slices[event["pid"], event["tid"]]
            if not any(
                s["ts"] - HALF_UNIT <= event["ts"] <= s["ts"] + s["dur"] + HALF_UNIT
                and s["cat"] == "exchange"
                for s in inside
            ):
                fail(f"arrow {number} is outside any exchange")
        if arrow["f"].get("bp") != "e":
            fail(f"arrow {number} is not bound to the slice around its end")
        if arrow["f"]["ts"] < arrow["s"]["ts"] - slack - HALF_UNIT:
            fail(f"arrow {number} points back in time by {arrow['s']['ts'] - arrow['f']['ts']} us")
    return len(ends)


def check_timings(timings, slices, described):
    recorded = timings["recorded_step"]
    processes = {
        int(name.split()[1].rstrip(",")): process
        for (process, _, kind), name in described.items()
        if kind == "process_name" and ", measured" in name
    }
    if len(processes) != len(recorded["ranks"]):
        fail(f"{len(processes)} measured ranks, but the run had {len(recorded['ranks'])}")
    for rank, process in processes.items():
        ops = timings["ranks"][rank]["steps"]
        spans = recorded["ranks"][rank]["spans"]
        drawn = [s for (p, _), of in slices.items() if p == process for s in of]
        if len(drawn) != len(ops):
            fail(f"rank {rank} has {len(drawn)} slices, but {len(ops)} ops")
        stated, shown = collections.Counter(), collections.Counter()
        for op, (begin, end) in zip(ops, spans, strict=True):
            stated[op["kind"], op["phase"], op["layer"]] += end - begin
        for event in drawn:
            key = event["cat"], event["args"]["phase"], event["args"]["layer"]
            shown[key] += event["args"]["seconds"]
            if event["dur"] > event["args"]["seconds"] * 1e6 + HALF_UNIT:
                fail(f"{event['name']} is longer than its op")
        for key in stated.keys() | shown.keys():
            if abs(stated[key] - shown[key]) > 1e-9:
                fail(f"{key} of rank {rank}: {shown[key]} s, but the file says {stated[key]} s")
        # One after the other, ops fill the step; side by side, the step is as long as the longest.
        last = max(s["ts"] + s["dur"] for s in drawn)
        first = recorded["start_seconds"] * 1e6
        if abs((last - first) * 1e-6 - max(end for _, end in spans)) > 1e-8:
            fail(f"rank {rank} ends at another time than in the file")
    return 2 * 1e6 * max(rank["clock_error_seconds"] for rank in recorded["ranks"])


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        trace = json.load(file)
    events = trace["traceEvents"]
    if trace["displayTimeUnit"] != "ms":
        fail("no display unit")
    described = names(events)
    check_names(events, described)
    slices = collections.defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            slices[event["pid"], event["tid"]].append(event)
        if event["ph"] == "C" and (event["ts"] < 0 or min(event["args"].values()) < 0):
            fail(f"negative counter {event}")
    slack = 0
    if len(sys.argv) > 2:
        with open(sys.argv[2], encoding="utf-8") as file:
            slack = check_timings(json.load(file), slices, described)
    check_nesting(slices)
    arrows = check_arrows(events, slices, slack)
    if not any(event["ph"] == "C" for event in events):
        fail("no counter of memory")
    print(f"{len(events)} events, {sum(map(len, slices.values()))} slices, {arrows} arrows")


if __name__ == "__main__":
    main()
