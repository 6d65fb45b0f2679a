#!/bin/bash
# A network of one's own: a plan for two ranks, the reasons for it, and a check of the numbers.
. "$(dirname "$0")/../example.bash"

show plan network.json -n 2 -o plan.json
show explain plan.json
show explain plan.json conv2
show run plan.json --verify --steps 5 -q

# Another plan for the same network: two halves of each image.
show plan network.json -n 2 --uniform H2 -o halves.json
show diff plan.json halves.json
show run halves.json --verify --steps 5 -q
