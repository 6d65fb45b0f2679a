#!/bin/bash
# Scripts for batch systems, run by bash with stand-ins for the commands that start ranks. The
# scripts must pass on the exact words of the command line and run nothing else.
. "$(dirname "$0")/expect.bash"
mkdir "$scratch/bin"
printf '#!/bin/bash\nprintf "%%s\\0" "$@" >"$words"\n' >"$scratch/bin/srun"
chmod +x "$scratch/bin/srun"
cp "$scratch/bin/srun" "$scratch/bin/jsrun"
cp "$scratch/bin/srun" "$scratch/bin/flux"
export words=$scratch/words

# runs SYSTEM PROGRAM OUTPUT: the script starts PROGRAM with -o OUTPUT, and leaves no file behind.
runs() {
  local called=$program
  program=$2
  expect 0 "node hours" sp profile --job "$1" -o "$3"
  program=$called
  rm -rf "$words" "$scratch/here" && mkdir "$scratch/here"
  (cd "$scratch/here" && PATH=$scratch/bin:$PATH bash "$scratch/stdout")
  mapfile -d '' -t found <"$words"
  check "$1: only that is run" test -z "$(ls "$scratch/here")"
  check "$1: the last words are -o $3" test "${found[*]: -2:1}, ${found[*]: -1}" = "-o, $3"
  check "$1: it starts $2" test "${found[*]: -7:1}" = "$2"
}

for system in slurm lsf flux; do
  runs $system "$program" cluster.json
  for output in \
    'a$(touch pwned).json' 'a`touch pwned`.json' '"; touch pwned; "' "'; touch pwned; '" 'a b\c&*?!~{1,2}.json'; do
    runs $system "$program" "$output"
  done
  # The program's own path may hold special characters, too.
  odd=$scratch/'it'"'"'s $(touch pwned) "`touch pwned`"'
  mkdir -p "$odd"
  ln -sf "$program" "$odd/stratplan"
  runs $system "$odd/stratplan" cluster.json
  for control in $'\n' $'\r' $'\t' $'\e' $'\x7f'; do
    expect 2 'expected a word of a command line to have no control characters, found "a\\x[0-9a-f]{2}#SBATCH --uid=0"' sp profile --job $system -o "a$control#SBATCH --uid=0"
    check "$system: no script" test ! -s "$scratch/stdout"
  done
done
# A job is for the network as the options make it.
expect 0 "the network's kernels" sp profile resnet18 -b 64 --input-size 64,64 --statistics local --freeze 'conv1*' --optimizer adam --job slurm -o cluster.json
check "all options of the network are passed on" grep -qF -- "profile resnet18 --batch 64 --input-size 64,64 --statistics local --freeze 'conv1*' --optimizer adam --precision fp32 --links" "$scratch/stdout"
expect 0 "" sp profile --job slurm --cluster-nodes 16 --largest 1MiB --name 'my cluster' -o cluster.json
check "and those of the cluster" grep -qF -- "profile --cluster-nodes 16 --largest 1MiB --name 'my cluster' --links" "$scratch/stdout"

# Options that would change nothing are refused.
for option in "--nodes 4" "--minutes 5"; do
  expect 2 "^stratplan: ${option% *} goes with --job" sp profile tiny -n 2 $option
done
for option in "--ranks-per-node 2" "--cluster-nodes 8" "--largest 1MiB"; do
  expect 2 "^stratplan: ${option% *} goes with --job or --links" sp profile tiny -n 2 $option
done
expect 2 "^stratplan: --ranks does not go with --job or --links" sp profile tiny -n 2 --job slurm -o cluster.json
finish
