"""P15: decoders given changed bytes raise errors of ours or nothing: `python -m tests.soak.fuzz`.

A trial is a thousand inputs of one decoder. An audit hook listens meanwhile: reading imports
nothing, compiles nothing, starts nothing, and opens no file but those of time zones. Memory is
capped, so that a length which is believed before it is checked is found too.
"""

import contextlib
import resource
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from holdfast.errors import HoldfastError
from tests.corruption.scene import build
from tests.soak.decoders import Decoder, decoders
from tests.soak.mutate import Mutator
from tests.soak.part import Outcome, Part, Trial, main, memory

INPUTS = 1000
BYTES_MAX = 768 * 1024 * 1024
"""What reading may take besides what the process had when it began."""
FORBIDDEN = {
    "import",
    "exec",
    "compile",
    "os.system",
    "subprocess.Popen",
    "os.exec",
    "ctypes.dlopen",
}
ZONES = ("zoneinfo", "tzdata")
WARM = 3
"""The first inputs load what is loaded on demand; nobody listens yet."""

_heard: list[str] = []
_is_listening = False


def _listen(event: str, arguments: tuple[object, ...]) -> None:
    if not _is_listening:
        return
    if event in FORBIDDEN:
        _heard.append(f"{event} {arguments[:1]}")
    elif event == "open" and not any(zone in str(arguments[0]) for zone in ZONES):
        _heard.append(f"open {arguments[0]}")


class Fuzzer:
    """Decoders in turn, each as often as its share says."""

    def __init__(self, seed: str, found: list[Decoder]) -> None:
        self._seed = seed
        self._turns = [decoder for decoder in found for _ in range(decoder.share)]

    def trial(self, number: int) -> Outcome:
        """A thousand inputs of one decoder."""
        global _is_listening  # noqa: PLW0603 the hook cannot be taken out again
        decoder = self._turns[number % len(self._turns)]
        mutator = Mutator(f"{self._seed} {number}", decoder.samples)
        found = Outcome()
        with contextlib.suppress(HoldfastError):
            decoder.read(decoder.samples[0])
        read = refused = 0
        _heard.clear()
        _is_listening = True
        try:
            for _ in range(INPUTS):
                data = mutator.next()
                try:
                    decoder.read(data)
                    read += 1
                except HoldfastError:
                    refused += 1
                except Exception as error:  # noqa: BLE001 a foreign error is a finding
                    told = f"{type(error).__name__}: {error}"[:200]
                    found.findings.append(f"{decoder.name} {data[:200].hex()}: {told}")
        finally:
            _is_listening = False
        found.findings += [f"{decoder.name}: {each}" for each in sorted(set(_heard))]
        found.counts.update({"inputs": INPUTS, "read": read, "refused": refused})
        found.counts[decoder.name] += INPUTS
        return found


@contextlib.contextmanager
def capped() -> Iterator[None]:
    """While it lasts this process gets little more memory than it has."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    most = pages * resource.getpagesize() + BYTES_MAX
    resource.setrlimit(resource.RLIMIT_AS, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


@contextlib.contextmanager
def trials(seed: str) -> Iterator[Trial]:
    """Decoders with their samples, under the cap."""
    with tempfile.TemporaryDirectory(dir=memory()) as folder:
        found = list(decoders(build(Path(folder)).closed))
    sys.addaudithook(_listen)
    with capped():
        yield Fuzzer(seed, found).trial


PART = Part(
    id="P15",
    name="fuzz",
    what="Decoders given changed bytes: an error of ours or a value, little memory, no code.",
    counted="inputs",
    goal=10_000_000,
    trials=trials,
    missing=lambda: "" if Path("/proc/self/statm").exists() else "memory is capped on Linux only",
)

if __name__ == "__main__":
    raise SystemExit(main(PART))
