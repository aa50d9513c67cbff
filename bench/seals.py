"""Seal ten million frames and see that no key ever has a nonce twice: `python -m bench.seals`."""

import argparse
import random
import sys
import time

import numpy as np

from holdfast.store.codec.frame import seal
from holdfast.store.seal.aead import NONCE_BYTES, Cipher

KEYS = 16
ROWS = 4096
TOLD_EVERY = 1_000_000


def main() -> int:
    """Exit status: 0 if no two different messages shared key and nonce, else 1."""
    parser = argparse.ArgumentParser(prog="python -m bench.seals", description=__doc__)
    parser.add_argument("--count", type=int, default=10_000_000)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    began, count = time.perf_counter(), asked.count
    nonces = _seal_all(count, asked.seed, began)
    distinct = len(np.unique(np.frombuffer(nonces, dtype=f"V{NONCE_BYTES + 1}")))
    took = time.perf_counter() - began
    sys.stdout.write(
        f"{count:,} seals of different messages under {KEYS} keys, seed {asked.seed}: "
        f"{distinct:,} pairs of key and nonce, {count - distinct} repeated, {took:.0f} s\n"
    )
    return int(distinct != count)


def _seal_all(count: int, seed: int, began: float) -> bytearray:
    """Key number and nonce of each seal. Messages differ by place or by bytes, never by both."""
    chance = random.Random(seed)  # noqa: S311 a seeded choice of messages
    ciphers = [Cipher(chance.randbytes(32), 1) for _ in range(KEYS)]
    frames = [seal(chance.randbytes(chance.randrange(64))) for _ in range(ROWS)]
    taken = bytearray()
    for number in range(count):
        key, place = number % KEYS, (number // ROWS).to_bytes(8, "big")
        # The number of the frame is part of its bytes: equal frames would be equal messages.
        frame = frames[number % ROWS] + number.to_bytes(8, "big")
        mac, _ = ciphers[key].seal(place, frame)
        taken += bytes([key]) + mac[:NONCE_BYTES]
        if number % TOLD_EVERY == TOLD_EVERY - 1:
            sys.stderr.write(f"[{time.perf_counter() - began:5.0f} s] {number + 1:,} seals\n")
    return taken


if __name__ == "__main__":
    sys.exit(main())
