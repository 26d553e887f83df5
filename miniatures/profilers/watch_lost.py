"""What goes missing without an error, in a process of its own."""

LOST = """
import json, os, tempfile, threading, torch
import torch.distributed as dist
from torch.profiler import profile, record_function
x = torch.ones(4)
found = {}
def alone():
    with profile() as mine:
        x + x
    found["only in a thread"] = len(mine.events())
helper = threading.Thread(target=alone)
helper.start()
helper.join()
with tempfile.TemporaryDirectory() as folder, profile() as seen:
    x + x
path = os.path.join(folder, "away", "trace.json")
seen.export_chrome_trace(path)
found["no such folder"] = int(os.path.exists(path))
def ranged(a):
    with record_function("mine"):
        return a.sin() + 1
compiled = torch.compile(ranged, backend="eager", fullgraph=True)
compiled(x)
with profile() as seen:
    with record_function("around"):
        compiled(x)
names = [event.name for event in seen.events()]
found["range in compiled code"] = names.count("mine")
found["range around it"] = names.count("around")
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
dist.all_reduce(x)
with profile() as seen:
    dist.all_reduce(x)
found["collective"] = [event.name for event in seen.events()]
dist.destroy_process_group()
run = profile()
run.start()
x + x
found["before stop"] = len(run.key_averages())
helper = threading.Thread(target=run.stop)
helper.start()
helper.join()
found["stopped elsewhere"] = len(run.events())
print(json.dumps(found))
"""
"""A program that prints how many lines, files or ranges each of its tries has."""
