"""A plain DDP script, as torch's tutorials have it: it prints a JSON line a step, and knows nothing of topolab."""

import json
import os
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

STEPS = int(sys.argv[1])
LOSS = float(sys.argv[2]) if len(sys.argv) > 2 else None

dist.init_process_group("gloo")
torch.manual_seed(0)
model = DistributedDataParallel(torch.nn.Linear(256, 256))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(1, STEPS + 1):
    began = time.perf_counter()
    loss = model(torch.randn(8, 256)).pow(2).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    if dist.get_rank() == 0:
        told = loss.item() if LOSS is None else LOSS
        print(json.dumps({"step": step, "loss": told, "seconds": time.perf_counter() - began, "tokens": 8}), flush=True)
dist.barrier()
os._exit(0)
