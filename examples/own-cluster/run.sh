#!/bin/bash
# Plans for a cluster that nobody has measured: sixteen nodes of four A100, described in ten lines.
. "$(dirname "$0")/../example.bash"

show machines cluster.json
show plan resnet50 -m cluster.json -n 64 -b 64 -o plan.json
show explain plan.json layer4.1.conv2 -m cluster.json
show scale resnet50 -m cluster.json -n 16..64 -b 64 -o scaling.svg
[[ -s scaling.svg ]] || fail "no scaling.svg"
