#!/bin/bash
# ResNet-50, batch 8, 2 ranks x 1 thread: stratplan's sample-parallel and recommended plans against PyTorch's DistributedDataParallel (gloo) alone. Both take batch
# statistics over the same samples: the 4 of each rank. See against_pytorch.sh.
#
#   tests/bench/against_pytorch_ddp.sh [ROUNDS] [STEPS]
exec "$(dirname "$0")/against_pytorch.sh" resnet50 --batch 8 --modes ddp --sample --rounds "${1:-3}" --steps "${2:-8}"
