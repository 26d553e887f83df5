"""Where Python classes meet C, in miniature: base class and metaclass in C, subclass in Python."""

from __future__ import annotations

import shutil
import subprocess
import sysconfig
import tempfile
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType
from typing import Any

from insidetorch.errors import BookError

OBJECT = r"""
#include <Python.h>

typedef struct { PyObject_HEAD float number; } Base; /* torch: a pointer to a TensorImpl */

static PyTypeObject *wrapper; /* the class that results get; Python registers it */

static PyObject *wrap(float number) {
  PyObject *result = wrapper->tp_alloc(wrapper, 0); /* no wrapper: a crash, as in torch */
  if (result) ((Base *)result)->number = number;
  return result;
}

static PyObject *number_of(PyObject *self, void *unused) {
  return PyFloat_FromDouble(((Base *)self)->number);
}

static PyTypeObject BaseType;

static PyObject *add(PyObject *unused, PyObject *args) {
  Base *a, *b;
  int good = PyArg_ParseTuple(args, "O!O!", &BaseType, &a, &BaseType, &b);
  return good ? wrap(a->number + b->number) : NULL;
}

static PyObject *add_to(PyObject *self, PyObject *args) {
  Base *b;
  return PyArg_ParseTuple(args, "O!", &BaseType, &b)
    ? wrap(((Base *)self)->number + b->number) : NULL;
}
"""

TYPES = r"""
/* runs at a class statement */
static int check(PyObject *made, PyObject *args, PyObject *kwargs) {
  if (PyType_Type.tp_init(made, args, kwargs)) return -1;
  if (!wrapper || PyType_IsSubtype((PyTypeObject *)made, wrapper)) return 0;
  PyErr_SetString(PyExc_RuntimeError, "Cannot subclass NumberBase directly");
  return -1;
}

static PyTypeObject Meta = {PyVarObject_HEAD_INIT(NULL, 0)
  .tp_name = "tiny._C._NumberMeta", .tp_init = check,
  .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE};

static PyMethodDef methods[] = {{"add", add_to, METH_VARARGS, NULL}, {NULL}};
static PyGetSetDef properties[] = {{"number", number_of}, {NULL}};
static PyObject *make(PyTypeObject *type, PyObject *args, PyObject *kwargs);
static PyTypeObject BaseType = {
  PyVarObject_HEAD_INIT(&Meta, 0) /* the type of this type */
  .tp_name = "tiny._C.NumberBase", .tp_basicsize = sizeof(Base),
  .tp_new = make,
  .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
  .tp_methods = methods, .tp_getset = properties};

static PyObject *make(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
  PyObject *self;
  float number = 0;
  if (type == &BaseType)
    return PyErr_Format(PyExc_RuntimeError,
                        "Cannot directly construct NumberBase");
  if (!PyArg_ParseTuple(args, "|f", &number)) return NULL;
  if (!(self = type->tp_alloc(type, 0))) return NULL;
  ((Base *)self)->number = number;
  return self;
}

static PyMethodDef static_functions[] = {
  {"add", add, METH_VARARGS | METH_STATIC, NULL}, {NULL}}; /* without self */
static PyTypeObject Functions = {PyVarObject_HEAD_INIT(NULL, 0)
  .tp_name = "tiny._C._FunctionsClass", .tp_basicsize = sizeof(PyObject),
  .tp_flags = Py_TPFLAGS_DEFAULT, .tp_methods = static_functions,
  .tp_new = PyType_GenericNew};
"""

MODULE = r"""
static PyObject *register_class(PyObject *self, PyObject *type) {
  wrapper = (PyTypeObject *)Py_NewRef(type);
  Py_RETURN_NONE;
}

static PyMethodDef globals_[] = {{"_register", register_class, METH_O, NULL}, {NULL}};
static PyModuleDef module = {
  PyModuleDef_HEAD_INIT, .m_name = "tiny._C", .m_size = -1, .m_methods = globals_};

PyMODINIT_FUNC PyInit__C(void) {
  Meta.tp_base = &PyType_Type;
  if (PyType_Ready(&Meta) || PyType_Ready(&BaseType) || PyType_Ready(&Functions)) return NULL;
  PyObject *m = PyModule_Create(&module);
  PyModule_AddObjectRef(m, "NumberBase", (PyObject *)&BaseType);
  PyModule_AddObject(m, "_Functions", PyType_GenericNew(&Functions, NULL, NULL));
  return m;
}
"""


def build() -> ModuleType:
    """Compile the C above and return it as a module.

    :raises BookError: without a C compiler or without Python's headers.
    """
    compiler = shutil.which("cc") or shutil.which("gcc")
    headers = Path(sysconfig.get_path("include"))
    if compiler is None or not (headers / "Python.h").exists():
        lacks = "a C compiler" if compiler is None else "the header Python.h"
        raise BookError(f"{lacks} is missing: install your system's packages gcc and python3-dev.")
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder) / "base.c", Path(folder) / "_C.so"
        source.write_text(OBJECT + TYPES + MODULE, encoding="utf-8")
        flags = ["-shared", "-fPIC", "-w", "-O1", f"-I{headers}"]
        subprocess.run([compiler, *flags, str(source), "-o", str(library)], check=True)
        loader = ExtensionFileLoader("tiny._C", str(library))
        spec = spec_from_loader("tiny._C", loader)
        assert spec is not None
        extension = module_from_spec(spec)
        loader.exec_module(extension)
    return extension


def package(extension: Any) -> ModuleType:
    """Return the Python half: a subclass that results get, and the functions as the package's."""

    class Number(extension.NumberBase):  # type: ignore[misc]
        def __repr__(self) -> str:
            return f"number({self.number:g})"

    extension._register(Number)
    tiny = ModuleType("tiny")
    vars(tiny)["Number"] = Number
    for name in dir(extension._Functions):
        if not name.startswith("_"):
            vars(tiny)[name] = getattr(extension._Functions, name)
    return tiny
