"""The bytes of bases and deltas: msgpack with a few extension items.

A base is `[VERSION, root]`; a delta is `[VERSION, first, node, head, body, node, head, body, ...]`.
Every dict, list and changeable leaf is a node. Nodes are numbered in the order in which they are
first met, a container before what is in it; a base numbers from 0 (the root), a delta from `first`.

A value is nil, bool, an integer of 64 bits, float64, text or bytes as such; a new list is an array;
a new dict whose keys are all text is a map. Everything else is an extension item:

| code | item | its bytes |
|---|---|---|
| 1 | nodes met before; in a list, one after the other | array: id, then differences to the next |
| 2 | new dict with a key that is no text | array: key, value, key, value ... |
| 3 | new container that stands elsewhere | array: number of nodes in it, source, keys down to it |
| 4 | leaf that never changes in place | the codec's bytes |
| 5 | new leaf that may change in place: a node | the codec's bytes |
| 6 | in a list, new containers that stand elsewhere | 4 arrays: nodes, rows, indexes, ordinals |
| 7 | new leaf that may change in place, and stands elsewhere | array: row, index, number |
| 8 | leaf that never changes in place, and stands elsewhere | array: row, index, number |

A list's `head` is `lo`, or the array `trim, lo, hi`: of the items it had, drop `trim` from the
front, keep the next `lo` and the last `hi`; `body` is the array of what stands between. A dict's
`head` is the array of keys to delete; `body` (a map, or item 2) is then set, key by key.
A list may stand several times in a delta: each `head` is for it as the one before leaves it.
A changed leaf is a new node, set wherever it stands.

A source is a row and the index of an entry in it: an answer, or a save if an ordinal follows. That
is the number of a container in the save, counted from its first new node; such a container, and
what is in it, refers to no node met before it. Item 6 has one number of each kind for each
container; rows are differences to the row before, ordinal -1 means an answer. Row 0, index 0 is the
entry right before the one that holds the save.

The number of items 7 and 8 says which item 4 or 5 of that save has the codec's bytes, counted from
0 in the order in which they stand there as values; -1 means that the answer has them.

Instead of the codec's bytes of a large leaf, also of text or bytes, a reference to them may stand.
"""

from typing import Final

import msgspec

from holdfast.store.codec.saved import (
    ANSWER,
    FIXED,
    FIXED_AT,
    LEAF,
    LEAF_AT,
    NODES,
    PAIRS,
    STORED,
    VERSION,
    unpack,
)

__all__ = [
    "ANSWER",
    "BESIDE",
    "FIXED",
    "FIXED_AT",
    "LEAF",
    "LEAF_AT",
    "NODES",
    "PAIRS",
    "STORED",
    "VERSION",
    "pack",
    "unpack",
]

BESIDE: Final = (0, 0)

pack: Final = msgspec.msgpack.Encoder().encode
