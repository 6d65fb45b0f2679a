#!/bin/bash
# Compares stratplan's sample-parallel and recommended plans for ResNet-50, batch 8, 2 ranks of 1
# thread, with PyTorch's DistributedDataParallel (gloo) only. Both take batch statistics over the
# same samples: the 4 of each rank. See against_pytorch.sh.
#
#   tests/bench/against_pytorch_ddp.sh [ROUNDS] [STEPS]
exec "$(dirname "$0")/against_pytorch.sh" resnet50 --batch 8 --modes ddp --sample \
  --rounds "${1:-3}" --steps "${2:-8}"
