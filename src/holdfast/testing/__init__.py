"""What proves the promises, shipped: contract suites, crash kit, kill kit, fakes.

Each is loaded when it is first used.
"""

from typing import TYPE_CHECKING

from holdfast.ondemand import later, offered

if TYPE_CHECKING:
    from holdfast.testing.codecs import CodecContract
    from holdfast.testing.contract import RecordsContract
    from holdfast.testing.durable import DurableRecordsContract
    from holdfast.testing.fakes import ManualClock
    from holdfast.testing.kit import CrashAt, CrashEverywhere, ReplaysExactly, Survived
    from holdfast.testing.objects import DurableObjectsContract, ObjectsContract
    from holdfast.testing.seals import SealsContract
    from holdfast.testing.world import Deed, World
else:
    __getattr__ = later(
        {
            "CodecContract": "holdfast.testing.codecs",
            "RecordsContract": "holdfast.testing.contract",
            "DurableRecordsContract": "holdfast.testing.durable",
            "ManualClock": "holdfast.testing.fakes",
            "CrashAt": "holdfast.testing.kit",
            "CrashEverywhere": "holdfast.testing.kit",
            "ReplaysExactly": "holdfast.testing.kit",
            "Survived": "holdfast.testing.kit",
            "DurableObjectsContract": "holdfast.testing.objects",
            "ObjectsContract": "holdfast.testing.objects",
            "SealsContract": "holdfast.testing.seals",
            "Deed": "holdfast.testing.world",
            "World": "holdfast.testing.world",
        },
        package=__name__,
    )

__all__ = [
    "CodecContract",
    "CrashAt",
    "CrashEverywhere",
    "Deed",
    "DurableObjectsContract",
    "DurableRecordsContract",
    "ManualClock",
    "ObjectsContract",
    "RecordsContract",
    "ReplaysExactly",
    "SealsContract",
    "Survived",
    "World",
]

__dir__ = offered(__all__)
