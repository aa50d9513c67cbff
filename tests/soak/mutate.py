"""Bytes changed as damage and malice change them: bits, lengths, pieces of other samples."""

import random

ODD = (0x00, 0x01, 0x7F, 0x80, 0x81, 0x90, 0x92, 0xC0, 0xC1, 0xC4, 0xC7, 0xC9, 0xCF, 0xD9)
"""Bytes that begin something in msgpack, or are the first or last of a range."""
LONG = (b"\xdd\xff\xff\xff\xff", b"\xdf\xff\xff\xff\xff", b"\xc6\xff\xff\xff\xf0", b"\xff" * 8)
"""Lengths that nobody has the memory for."""


class Mutator:
    """Changes of a few samples, drawn by a seed."""

    def __init__(self, seed: str, samples: list[bytes]) -> None:
        self._chance, self._samples = random.Random(seed), samples  # noqa: S311 a seed, not a secret
        self._acts = (
            *(self._flip,) * 4,
            *(self._set,) * 3,
            *(self._insert, self._delete, self._repeat, self._splice, self._cut, self._stretch),
        )

    def next(self) -> bytes:
        """A sample, changed in one to four places."""
        chance = self._chance
        data = bytearray(chance.choice(self._samples))
        for _ in range(1 + (chance.getrandbits(4) & chance.getrandbits(2))):
            if not data:
                break
            self._acts[chance.getrandbits(16) % len(self._acts)](data, chance.getrandbits(30))
        return bytes(data)

    def _flip(self, data: bytearray, drawn: int) -> None:
        data[(drawn >> 3) % len(data)] ^= 1 << (drawn & 7)

    def _set(self, data: bytearray, drawn: int) -> None:
        data[(drawn >> 8) % len(data)] = ODD[drawn % len(ODD)] if drawn & 128 else drawn & 255

    def _insert(self, data: bytearray, drawn: int) -> None:
        at = drawn % (len(data) + 1)
        data[at:at] = self._chance.randbytes(1 + (drawn >> 20) % 4)

    def _delete(self, data: bytearray, drawn: int) -> None:
        at = drawn % len(data)
        del data[at : at + 1 + (drawn >> 20) % 8]

    def _repeat(self, data: bytearray, drawn: int) -> None:
        at = drawn % len(data)
        data[at:at] = data[at : at + 1 + (drawn >> 20) % 32]

    def _splice(self, data: bytearray, drawn: int) -> None:
        other = self._chance.choice(self._samples)
        start, at = (drawn >> 12) % (len(other) + 1), drawn % (len(data) + 1)
        data[at : at + 16] = other[start : start + 1 + (drawn >> 22)]

    def _cut(self, data: bytearray, drawn: int) -> None:
        del data[drawn % len(data) :]

    def _stretch(self, data: bytearray, drawn: int) -> None:
        long = LONG[drawn & 3]
        at = (drawn >> 2) % len(data)
        data[at : at + len(long)] = long
