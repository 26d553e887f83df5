"""Two random number generators, bit for bit as PyTorch's: Mersenne Twister and Philox."""

from __future__ import annotations

import math
import struct

WORD = 0xFFFFFFFF
"""The largest number of 32 bits; `& WORD` keeps the low 32 bits of a Python integer."""

LENGTH, SHIFT = 624, 397


class MersenneTwister:
    """The generator of the CPU: 624 numbers of 32 bits, stirred when they are used up.

    :param seed: a whole number from 0 up; only its low 32 bits count.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.numbers = [seed & WORD]
        for place in range(1, LENGTH):
            last = self.numbers[-1]
            self.numbers.append((1812433253 * (last ^ (last >> 30)) + place) & WORD)
        self.used, self.stirred = LENGTH, False
        self.spare: float | None = None

    def stir(self) -> None:
        """Replace all 624 numbers: each by a mix of itself, its neighbour and one 397 further."""
        numbers = self.numbers
        for place in range(LENGTH):
            mixed = numbers[place] & 0x80000000 | numbers[(place + 1) % LENGTH] & 0x7FFFFFFF
            turned = mixed >> 1 ^ (0x9908B0DF if mixed & 1 else 0)
            numbers[place] = numbers[(place + SHIFT) % LENGTH] ^ turned
        self.used, self.stirred = 0, True

    def bits32(self) -> int:
        """Return the next number of 32 bits; the last four lines mix its bits once more."""
        if self.used == LENGTH:
            self.stir()
        number = self.numbers[self.used]
        self.used += 1
        number ^= number >> 11
        number ^= number << 7 & 0x9D2C5680
        number ^= number << 15 & 0xEFC60000
        return number ^ number >> 18

    def bits64(self) -> int:
        """Return two numbers as one of 64 bits, the first of them above."""
        high = self.bits32()
        return high << 32 | self.bits32()

    def rand(self) -> float:
        """Return what `torch.rand` makes of the next number: its low 24 bits over 2**24."""
        return (self.bits32() & 0xFFFFFF) / 2**24

    def rand_double(self) -> float:
        """Return the same for `float64`: the low 53 of 64 bits over 2**53."""
        return (self.bits64() & 2**53 - 1) / 2**53

    def randint(self, below: int) -> int:
        """Return the next number modulo `below`, from 2**28 on of 64 bits."""
        return (self.bits64() if below >= 2**28 else self.bits32()) % below

    def seed63(self) -> int:
        """Return what `random_()` puts into an `int64` tensor: 64 bits modulo 2**63."""
        return self.bits64() % 2**63

    def randperm(self, count: int) -> list[int]:
        """Return the numbers below `count`, each swapped with one that is not behind it."""
        order = list(range(count))
        for place in range(count - 1):
            other = place + self.bits32() % (count - place)
            order[place], order[other] = order[other], order[place]
        return order

    def normal(self) -> float:
        """Return a number of the bell curve, made of two uniform ones; every second is a spare."""
        if self.spare is not None:
            number, self.spare = self.spare, None
            return number
        turn, height = 2 * math.pi * self.rand_double(), self.rand_double()
        radius = math.sqrt(-2 * math.log1p(-height))
        self.spare = radius * math.sin(turn)
        return radius * math.cos(turn)

    def state(self) -> bytes:
        """Return what `torch.get_rng_state` holds of it, without the spare: 5,016 of 5,056 bytes.

        Seed, how many are left until the next stirring, whether seeded, the next place, and the
        624 numbers, each in 8 bytes.
        """
        place = self.used if self.stirred else 0
        left = LENGTH + 1 - self.used
        return struct.pack(f"<QiiQ{LENGTH}Q", self.seed, left, 1, place, *self.numbers)


class Philox:
    """The generator of a GPU: no memory, only a formula of a key and a counter.

    :param seed: the key, 64 bits.
    :param thread: which of 2**64 sequences, PyTorch's number of a GPU thread.
    :param offset: how many groups of four numbers of the sequence are left out.
    """

    def __init__(self, seed: int, thread: int = 0, offset: int = 0) -> None:
        self.seed = seed
        self.counter = offset | thread << 64

    def four(self) -> list[int]:
        """Return the next four numbers of 32 bits: ten rounds on the counter, which counts on."""
        left, right = self.seed & WORD, self.seed >> 32
        words = [self.counter >> 32 * at & WORD for at in range(4)]
        for _ in range(10):
            one, two = 0xD2511F53 * words[0], 0xCD9E8D57 * words[2]
            words = [
                two >> 32 ^ words[1] ^ left, two & WORD, one >> 32 ^ words[3] ^ right, one & WORD,
            ]  # fmt: skip
            left, right = left + 0x9E3779B9 & WORD, right + 0xBB67AE85 & WORD
        self.counter = self.counter + 1 & 2**128 - 1
        return words


def uniform_on_gpu(seed: int, element: int) -> float:
    """Return element `element` of the first `torch.rand(n, device="cuda")` after a seed.

    For tensors of at most one element for each thread that the GPU starts at a time.
    """
    return Philox(seed, element).four()[0] * 2**-32 + 2**-33


def normal_on_gpu(seed: int, element: int) -> float:
    """Return element `element` of the first `torch.randn(n, device="cuda")` after a seed."""
    first, second, *_ = Philox(seed, element).four()
    radius = math.sqrt(-2 * math.log(first * 2**-32 + 2**-33))
    return radius * math.sin(2 * math.pi * (second * 2**-32 + 2**-33))
