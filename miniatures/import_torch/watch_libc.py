"""What an import asks of the C library: environment variables, and functions for forks."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from insidetorch import processes
from insidetorch.errors import BookError
from miniatures.import_torch.watch import name, run, torch_folder

# Loaded before all others, its two functions are found first; each notes the call and passes it on.
_SPY = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
extern char **environ;

static char *find(const char *name) {
  size_t n = strlen(name);
  for (char **one = environ; one && *one; one++)
    if (!strncmp(*one, name, n) && (*one)[n] == '=') return *one + n + 1;
  return 0;
}

static void note(const char *kind, const char *who, const char *what) {
  static int file, owner;
  char *path = find("IMPORT_LOG"), line[900];
  if (!path) return;
  if (!file) {
    file = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    owner = getpid();
  }
  if (owner != getpid()) return;
  int n = snprintf(line, sizeof line, "%s\t%s\t%s\n", kind, who ? who : "?", what);
  if (n > 0 && write(file, line, n) < 0) return;
}

static const char *file_of(void *address) {
  Dl_info info;
  return dladdr(address, &info) ? info.dli_fname : 0;
}

static void (*children[16])(void);
static const char *owners[16];
static char said_by[16][200];
static int used;

static void ran(int i) { /* in the child: no check of the owner */
  char *path = find("IMPORT_LOG"), line[400];
  int file = path ? open(path, O_WRONLY | O_APPEND) : -1;
  if (file < 0) return;
  int n = snprintf(line, sizeof line, "ran\t%s\t%s\n", owners[i] ? owners[i] : "?", said_by[i]);
  if (n > 0 && write(file, line, n) < 0) return;
  close(file);
}

#define CHILD(i) static void child##i(void) { ran(i); children[i](); }
CHILD(0) CHILD(1) CHILD(2) CHILD(3) CHILD(4) CHILD(5) CHILD(6) CHILD(7)
CHILD(8) CHILD(9) CHILD(10) CHILD(11) CHILD(12) CHILD(13) CHILD(14) CHILD(15)
static void (*instead[16])(void) = {
  child0, child1, child2, child3, child4, child5, child6, child7,
  child8, child9, child10, child11, child12, child13, child14, child15};

char *getenv(const char *name) {
  note("getenv", file_of(__builtin_return_address(0)), name);
  return find(name);
}

char *secure_getenv(const char *name) {
  note("getenv", file_of(__builtin_return_address(0)), name);
  return find(name);
}

int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void), void *d) {
  static int (*real)(void (*)(void), void (*)(void), void (*)(void), void *);
  void *frames[8];
  char said[800];
  int n = 0, depth = backtrace(frames, 8);
  n += snprintf(said, sizeof said, "%s%s%s", prepare ? "before " : "", parent ? "parent " : "",
                child ? "child " : "");
  for (int i = 1; i < depth && n < 600; i++) {
    Dl_info info;
    if (!dladdr(frames[i], &info)) continue;
    if (info.dli_sname) n += snprintf(said + n, 150, "|%.140s", info.dli_sname);
    else n += snprintf(said + n, 30, "|@%lx", (char *)frames[i] - (char *)info.dli_fbase);
  }
  note("atfork", file_of(child ? (void *)child : prepare ? (void *)prepare : frames[1]), said);
  if (!real) real = dlsym(RTLD_NEXT, "__register_atfork");
  if (child && used < 16) {
    children[used] = child;
    owners[used] = file_of((void *)child);
    snprintf(said_by[used], sizeof said_by[0], "%.199s", said);
    child = instead[used++];
  }
  return real(prepare, parent, child, d);
}
"""

_PROGRAM = """
import json, os, sys
from multiprocessing import util
asked, seen = [], []
at_fork, after_fork = os.register_at_fork, util.register_after_fork

def caller():
    frame = sys._getframe(2)
    while frame.f_code.co_filename.endswith(("<frozen os>", "_collections_abc.py", "os.py")) or (
            "_collections_abc" in frame.f_code.co_filename):
        frame = frame.f_back
    return frame.f_globals.get("__name__", "?")

get, has = os._Environ.__getitem__, os._Environ.__contains__
def getitem(self, key):
    asked.append((key, caller()))
    return get(self, key)
def contains(self, key):
    asked.append((key, caller()))
    return has(self, key)
def called(f):
    return getattr(f, "__module__", None) or "?", getattr(f, "__qualname__", repr(f))
def logged(f):
    def step(*args):
        with open(LOG, "a") as log:
            log.write("ran\\t" + "\\t".join(called(f)) + "\\n")
        return f(*args)
    return step
def note_at_fork(**functions):
    seen.extend((when, f, "any fork") for when, f in functions.items())
    return at_fork(**{when: logged(f) if "child" in when else f for when, f in functions.items()})
def note_after_fork(thing, function):
    seen.append(("after_in_child", function, "multiprocessing"))
    return after_fork(thing, logged(function))
os._Environ.__getitem__, os._Environ.__contains__ = getitem, contains
os.register_at_fork, util.register_after_fork = note_at_fork, note_after_fork
LOG = os.environ["IMPORT_LOG"]
def mark(what):
    with open(LOG, "a") as log:
        log.write(what + "\\t\\t\\n")
mark("begin")
import torch
mark("end")
os._Environ.__getitem__, os._Environ.__contains__ = get, has
import multiprocessing, subprocess
def own_fork():
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)
def started(how):
    process = multiprocessing.get_context(how).Process(target=len, args=("",))
    process.start()
    process.join()
ways = {"os.fork": own_fork, "multiprocessing, fork": lambda: started("fork"),
        "subprocess": lambda: subprocess.run([sys.executable, "-c", "pass"])}
for way, start in ways.items():
    mark("way " + way)
    start()
mark("way end")
handlers = [(*called(f), how) for when, f, how in seen if "child" in when]
print(json.dumps([asked, handlers]))
"""


@dataclass(frozen=True)
class Handler:
    """A function registered for forks during an import.

    :param owner: the library or the Python module that it is part of.
    :param function: its name, or in C++ the function that registered it.
    :param runs: ``before``, ``parent`` or ``child``, where that is known.
    :param after: which forks call it: ``any fork`` or those of ``multiprocessing``.
    """

    owner: str
    function: str
    runs: str
    after: str


@dataclass(frozen=True)
class Asked:
    """What an import asked of the C library and of Python's copy of the environment.

    :param variables: environment variable → who asked for it, libraries or Python modules.
    :param handlers: functions registered for forks.
    :param ran: a way to start a child → owner and function of the handlers that ran in it.
    """

    variables: dict[str, list[str]]
    handlers: list[Handler]
    ran: dict[str, list[tuple[str, str]]]


@contextmanager
def _spy() -> Iterator[tuple[Path, Path]]:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise BookError("a C compiler is missing: install your system's package gcc.")
    with tempfile.TemporaryDirectory() as folder:
        code, library = Path(folder) / "spy.c", Path(folder) / "spy.so"
        code.write_text(_SPY, encoding="utf-8")
        command = [compiler, "-shared", "-fPIC", "-w", "-O1", str(code), "-o", str(library), "-ldl"]
        subprocess.run(command, check=True)
        yield library, Path(folder) / "log"


def asked_by_import() -> Asked:
    """Import torch in a new process and return what it asked of the C library.

    :raises BookError: without a C compiler, or on a system without `LD_PRELOAD`.
    """
    with _spy() as (library, log):
        done = run(_PROGRAM, LD_PRELOAD=str(library), IMPORT_LOG=str(log))
        lines = [line.split("\t") for line in log.read_text(encoding="utf-8").splitlines()]
    kinds = [kind for kind, *_ in lines]
    if "begin" not in kinds:
        raise BookError("nothing was noted: use Linux with the GNU C library.")
    inside = lines[kinds.index("begin") : kinds.index("end")]
    asked, handlers = json.loads(done.stdout.splitlines()[-1])
    variables: dict[str, list[str]] = {}
    for kind, who, what in inside:
        if kind == "getenv":
            variables.setdefault(what, []).append(name(who))
    for what, who in asked:
        variables.setdefault(what, []).append(who)
    found = [
        Handler(name(who), _registrar(what, who), what.split("|")[0].strip(), "any fork")
        for kind, who, what in inside
        if kind == "atfork"
    ]
    found += [Handler(module, function, "child", after) for module, function, after in handlers]
    ran: dict[str, list[tuple[str, str]]] = {}
    way = ""
    for kind, who, what in lines[kinds.index("end") :]:
        if kind.startswith("way "):
            way = kind.removeprefix("way ")
            ran.setdefault(way, [])
        elif kind == "ran":
            ran[way].append((name(who), _registrar(what, who) if "|" in what else what))
    del ran["end"]
    return Asked({what: list(dict.fromkeys(who)) for what, who in variables.items()}, found, ran)


def _registrar(said: str, file: str) -> str:
    """Return the first function among frames that has a name of its own, without its mangling."""
    for frame in said.split("|")[1:]:
        label = _function_at(file, frame[1:]) if frame.startswith("@") else frame
        if label not in ("__register_atfork", "pthread_atfork", "__pthread_atfork", "??"):
            size = re.match(r"_Z(\d+)", label)
            return label[size.end() :][: int(size[1])] if size else label
    return "?"


@cache
def _function_at(file: str, place: str) -> str:
    """Return the name of the function at a place of a file that keeps its symbols, or ``??``."""
    if shutil.which("addr2line") is None:
        return "??"
    done = processes.run(["addr2line", "-f", "-e", file, f"0x{place}"])
    return (done.stdout.splitlines() or ["??"])[0]


def of_torch(who: str) -> bool:
    """Tell whether a library or a Python module is PyTorch's."""
    folder = torch_folder()
    inside = {file.name for file in [*folder.glob("*.so"), *folder.glob("lib/*.so*")]}
    return who in inside or who.split(".")[0] == "torch"
