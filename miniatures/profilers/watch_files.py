"""Programs that run in a process of their own: the execution trace's file, and a warning."""

EXECUTION_FILES = """
import json, os, tempfile, torch
from pathlib import Path
from torch.profiler import ExecutionTraceObserver, ProfilerActivity, profile, record_function
def readable(path):
    try:
        return bool(json.loads(path.read_text()))
    except ValueError:
        return False
def recorded(name):
    path = Path(folder, "et.json")
    observer = ExecutionTraceObserver().register_callback(str(path))
    observer.start()
    with record_function(name):
        torch.ones(1)
    observer.stop()
    early = readable(path)
    observer.unregister_callback()
    return early, readable(path)
with tempfile.TemporaryDirectory() as folder:
    tempfile.tempdir = folder
    os.environ["ENABLE_PYTORCH_EXECUTION_TRACE"] = "1"
    os.environ["ENABLE_PYTORCH_EXECUTION_TRACE_EXTRAS"] = "1"
    run = profile(activities=[ProfilerActivity.CPU])
    with run:
        torch.ones(1)
    (path,) = Path(folder).glob("*.et.json")
    (extra,) = Path(folder).glob("*_resources")
    alone = readable(path)
    print(json.dumps([recorded("plain"), recorded('a "quote"'), alone]))
"""
"""It prints whether files of execution traces are JSON: after `stop`, at the end, of a profile."""

CYCLES = """
import json, warnings
from torch.profiler import ProfilerActivity, profile, schedule
def told(**options):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        with profile(activities=[ProfilerActivity.CPU], **options) as run:
            for _ in range(6):
                run.step()
    return sum("clears events" in str(w.message) for w in seen)
plan = {"schedule": schedule(wait=0, warmup=1, active=1)}
print(json.dumps([told(), told(acc_events=True, **plan), told(**plan), told(**plan)]))
"""
"""It prints how often four profiles warn: plain, kept, and twice with cycles that are not kept."""
