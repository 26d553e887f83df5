"""The cell magic %%cuda: run on a GPU; elsewhere say that there is no recording yet."""

from __future__ import annotations

from insidetorch.display import Display, escape, show


def register() -> None:
    """Register %%cuda in the running IPython shell."""
    from IPython import get_ipython

    get_ipython().register_magic_function(cuda, "cell", "cuda")


def cuda(line: str, cell: str) -> None:
    """Run the cell on a CUDA device, or say that it was not run.

    :param line: a name for the cell, e.g. ``%%cuda device-thread``.
    :param cell: its code.
    """
    import torch
    from IPython import get_ipython

    if torch.cuda.is_available():
        name = torch.cuda.get_device_name()
        print(f"[{name}, CUDA {torch.version.cuda}, torch {torch.__version__}]")
        get_ipython().run_cell(cell).raise_error()
        return
    show(not_recorded(line.strip()))


def not_recorded(name: str) -> Display:
    """Return the box that stands where a GPU's output would."""
    text = (
        "Not yet recorded: this cell needs a CUDA device, and the machine that built this page "
        "has none. Run the notebook on a GPU box to see its output."
    )
    html = f'<div class="it it-absent" role="note"><p>{escape(text)}</p></div>'
    return Display(html, text, {"kind": "cuda", "name": name, "state": "not recorded"})
