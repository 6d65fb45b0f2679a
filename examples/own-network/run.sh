#!/bin/bash
# Makes a plan of one's own network for two ranks, with its reasons and a check of its numbers.
. "$(dirname "$0")/../example.bash"

show plan network.json -n 2 -o plan.json
show explain plan.json
show explain plan.json conv2
show run plan.json --verify --steps 5 -q

# Another plan for the same network splits each image into two halves.
show plan network.json -n 2 --uniform H2 -o halves.json
show diff plan.json halves.json
show run halves.json --verify --steps 5 -q
