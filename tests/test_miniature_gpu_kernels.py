"""The kernels give PyTorch's results, the machine counts right, and the launches are PyTorch's."""

from __future__ import annotations

import json
import random
import re
import sys
from pathlib import Path

import pytest
import torch

from insidetorch import processes
from insidetorch.errors import BookError
from miniatures.gpu_performance import block_machine
from miniatures.gpu_performance import kernels as gpu_kernels
from miniatures.gpu_performance import watch_launches as launch_oracle
from miniatures.gpu_performance import watch_triton as gpu_kernels_triton
from miniatures.gpu_performance.block_machine import IllegalAccess, Machine
from miniatures.gpu_performance.cases import runs
from miniatures.gpu_performance.kernels import tl
from miniatures.gpu_performance.launch_rules import (
    A100,
    H100,
    RTX3090,
    elementwise,
    occupancy,
    reduction,
)
from miniatures.gpu_performance.watch_triton import (
    FILE,
    VARIANTS,
    compile_all,
    compiled,
    instructions,
    interpret_all,
)

INCLUDE = Path(torch.__file__).parent / "include"
needs_triton = pytest.mark.needs("triton")


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> object:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def run(kernel: str, grid: tuple[int, ...], *args: object, **options: object) -> Machine:
    return Machine().run(getattr(gpu_kernels, kernel), grid, *args, **options)


class TestKernels:
    def test_they_give_what_pytorch_gives(self) -> None:
        """In one run of each: the chapter has thirty."""
        seen = 0
        for case in runs(1, seed=7):
            run(case.kernel, case.grid, *case.args, **case.options)
            limit = 0.0 if case.kernel in ("transpose", "permute") else 1e-5
            assert case.error() <= limit, case
            seen += 1
        assert seen == 8

    def test_a_wrong_kernel_is_seen(self) -> None:
        case = next(case for case in runs(1) if case.kernel == "softmax")
        run("softmax", case.grid, *case.args[:-1], case.args[-1] - 1, **case.options)
        assert case.error() > 1e-3

    @pytest.mark.slow
    @needs_triton
    def test_tritons_interpreter_agrees(self) -> None:
        cases = list(runs(1, seed=8))
        answers = interpret_all([case.job for case in cases])
        for case, tensors in zip(cases, answers, strict=True):
            assert case.error(tensors[-1]) < 1e-5, case.kernel

    @pytest.mark.slow
    @needs_triton
    def test_the_interpreter_runs_a_function_too(self) -> None:
        def double(x: tl.tensor, out: tl.tensor, BLOCK: tl.constexpr) -> None:
            at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
            tl.store(out + at, 2 * tl.load(x + at))

        x = torch.randn(64)
        ((_, out),) = interpret_all([(double, (4,), (x, torch.zeros(64)), {"BLOCK": 16})])
        assert torch.equal(out, 2 * x)
        with pytest.raises(BookError, match="power of 2"):
            interpret_all([(double, (4,), (x, torch.zeros(64)), {"BLOCK": 12})])

    def test_indices_of_64_bits_cost_registers(self) -> None:
        made = json.loads(FILE.read_text(encoding="utf-8"))["kernels"]
        few, many = (made[f"permute, int{size}"] for size in (32, 64))
        assert few["registers"] < many["registers"]
        divides = [{op for op in found["instructions"] if op.startswith("div.")}
                   for found in (few, many)]  # fmt: skip
        assert divides == [{"div.s32"}, {"div.s64", "div.u32"}]

    def test_without_triton_the_interpreter_says_so(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(gpu_kernels_triton, "available", lambda: False)
        with pytest.raises(BookError, match="install the package triton"):
            interpret_all([("softmax", (1,), (torch.zeros(1, 4),), {})])

    @pytest.mark.slow
    @needs_triton
    def test_the_recorded_code_is_what_this_triton_makes(self) -> None:
        recorded, made = json.loads(FILE.read_text(encoding="utf-8")), compile_all()
        assert recorded["triton"] == made["triton"], (
            "record again: python -m miniatures.gpu_performance.watch_triton"
        )
        assert made == recorded

    def test_without_triton_the_recording_is_shown_and_stays(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setattr(gpu_kernels_triton, "available", lambda: False)
        kept = tmp_path / "kept.json"
        kept.write_bytes(FILE.read_bytes())
        monkeypatch.setattr(gpu_kernels_triton, "FILE", kept)
        assert list(compiled()["kernels"]) == list(VARIANTS)
        before = kept.stat().st_mtime_ns
        with pytest.raises(BookError, match="Triton is not installed"):
            gpu_kernels_triton.record()
        assert kept.stat().st_mtime_ns == before

    def test_instructions_are_counted_in_ptx(self) -> None:
        ptx = "\tld.global.v4.b32 {%r1}, [%rd];\n\t@%p1 ld.global.b32 %r;\n// ld.global.b32 x\n"
        assert instructions(ptx) == {"ld.global.v4.b32": 1, "ld.global.b32": 1}

    @pytest.mark.slow
    @needs_triton
    def test_what_a_gpu_will_time_is_right_under_the_interpreter(self) -> None:
        code = """
import torch
from miniatures.gpu_performance.watch_speed import attentions, contest, products
for entry in contest(5, 70, "cpu").values():
    torch.testing.assert_close(entry.own(), entry.eager(), atol=1e-5, rtol=1e-5)
entry = products(70, torch.float32, "cpu")
torch.testing.assert_close(entry.own(), entry.eager(), atol=1e-4, rtol=1e-4)
(q, k, v), own = attentions(2, 70, torch.float16, "cpu")
right = torch.nn.functional.scaled_dot_product_attention(q.float(), k.float(), v.float())
torch.testing.assert_close(own().float(), right, atol=2e-3, rtol=1e-2)
"""
        env = processes.environment(*sys.path, TRITON_INTERPRET="1")
        done = processes.run([sys.executable, "-c", code], env=env)
        assert not done.returncode, done.stderr


class TestMachine:
    @pytest.mark.parametrize("stride, ratio", [(1, 1), (2, 2), (8, 8), (32, 8)])
    def test_sectors(self, stride: int, ratio: int) -> None:
        x, out = torch.arange(64.0 * stride), torch.zeros(64)
        machine = Machine()
        machine._place = (0,)
        tl = machine.language()
        at = tl.arange(0, 64)
        tl.store(block_machine.Pointer(out) + at, tl.load(block_machine.Pointer(x) + at * stride))
        assert torch.equal(out, x[::stride])
        assert machine.loads.asked == 256 and machine.loads.moved == 256 * ratio
        assert machine.stores.moved == 256

    def test_half_types_share_a_sector(self) -> None:
        x = torch.zeros(16, 32, dtype=torch.float16)
        flat = torch.zeros(32, 16, dtype=torch.float16)
        across = run("transpose", (16, 1), x, flat, 16, 32, TALL=1, WIDE=32)
        whole = run("transpose", (1, 1), x, flat, 16, 32, TALL=16, WIDE=32)
        assert across.stores.moved == 16 * x.nbytes and whole.stores.moved == x.nbytes

    def test_masked_elements_move_nothing(self) -> None:
        x, out = torch.ones(3, 5), torch.zeros(3, 5)
        machine = run("softmax", (3,), x, out, 5, BLOCK=64)
        assert machine.loads.asked == machine.stores.asked == x.nbytes

    @pytest.mark.parametrize("at", [-1, 8])
    def test_memory_outside_is_an_error(self, at: int) -> None:
        machine = Machine()
        with pytest.raises(IllegalAccess, match="of 8"):
            machine.load(block_machine.Pointer(torch.zeros(8), torch.tensor([at])))

    def test_products_are_counted(self) -> None:
        a = torch.randn(32, 32)
        machine = run("matmul", (2, 2), a, a, a.clone(), 32, 32, 32, M=16, N=16, K=16,
                      PRECISION="ieee")  # fmt: skip
        assert machine.flop == 2 * 32**3 and machine.programs == 4


class TestLaunches:
    @pytest.mark.needs("c++")
    def test_reductions_are_launched_as_pytorch_does(self) -> None:
        noise = random.Random(11)

        def size() -> int:
            some = noise.randint(2, 40), noise.randint(2, 5000), 2 ** noise.randint(1, 22)
            return noise.choice(some)

        cases: list[tuple[int, int, int | None]] = []
        while len(cases) < 1000:
            rows, columns = size(), size()
            if rows * columns < 2**31:
                cases.append((rows, columns, noise.choice([0, 1, None])))
        for chip in (H100, RTX3090):
            asked = [(*case, chip.sms, chip.threads) for case in cases]
            for case, theirs in zip(cases, launch_oracle.launches(asked), strict=True):
                ours = reduction(*case, chip=chip)
                assert (*ours.grid, *ours.block, ours.each, ours.vector) == theirs, case

    def test_a_changed_header_is_reported(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(Path, "read_text", lambda *_, **__: "nothing here")
        with pytest.raises(BookError, match="has changed"):
            launch_oracle._taken()

    def test_occupancy_is_nvidias(self) -> None:
        file = Path(__file__).parent / "data" / "occupancy_nvidia.json"
        _, cases = json.loads(file.read_text(encoding="utf-8")).values()
        chips = {"H100": H100, "A100": A100, "RTX3090": RTX3090}
        assert len(cases) == 600 and len({case[-1] for case in cases}) > 10
        for name, threads, registers, shared, blocks in cases:
            assert occupancy(chips[name], threads, registers, shared).blocks == blocks

    @pytest.mark.parametrize(
        "size, moved, address, vector, each",
        [
            (4, 8, 0, 4, 8), (4, 8, 4, 1, 4), (4, 8, 8, 2, 8), (2, 4, 16, 8, 8),
            (2, 6, 8, 4, 8), (8, 16, 0, 2, 8), (1, 1, 0, 8, 16), (1, 2, 3, 1, 4),
        ],
    )  # fmt: skip
    def test_elementwise(self, size: int, moved: int, address: int, vector: int, each: int) -> None:
        launch = elementwise(10**6, size, moved, (address, 0))
        assert (launch.vector, launch.each) == (vector, each)
        assert launch.grid == (-(-(10**6) // (128 * each)), 1)

    def test_the_header_has_the_numbers_of_the_rule(self) -> None:
        loops = (INCLUDE / "ATen/native/cuda/CUDALoops.cuh").read_text(encoding="utf-8")
        threads = (INCLUDE / "ATen/native/cuda/thread_constants.h").read_text(encoding="utf-8")
        plain = loops[loops.rindex("constexpr auto elems_per_thread()") :][:160]
        assert re.findall(r"return (\d+);", plain) == ["16", "8"]
        assert "elementwise_thread_work_size() {return 4;}" in loops
        assert "uint16_t vec_size = 16 / static_cast<uint16_t>(sizeof(cpp_type));" in loops
        assert "return C10_WARP_SIZE * 4;" in threads
