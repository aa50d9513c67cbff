"""The SHA-256 of a value's content: the same for plain and tracked, whatever was cached.

A hash of hashes along the value's own structure. Up to `GROUP` entries, a list is the hash of its
items and a dict that of its keys, sorted, with their values. A longer list is hashed by groups of
consecutive items, a larger dict by buckets of keys; their number depends on the length alone. An
item is itself if it is text, bytes, number, bool or None, the digest of a dict or list, and else
the codec's canonical bytes. The order of a dict does not count; True, 1 and 1.0 differ.
"""

from collections.abc import Callable, Iterable
from functools import partial
from operator import attrgetter, itemgetter
from typing import Any, Final
from zlib import crc32

import msgspec
from msgspec.msgpack import Ext

from holdfast import errors, native
from holdfast.capture.fixed import BASIC, Value, is_fixed
from holdfast.capture.flats import Flats
from holdfast.capture.hashes import GROUP, DictCache, ListCache, buckets_for, hash_groups
from holdfast.capture.node import KINDS, LOOSE, Tracker, step
from holdfast.capture.packable import is_packable
from holdfast.capture.shadow import Shadows
from holdfast.capture.tracked import TrackedDict, TrackedList
from holdfast.native import sha256
from holdfast.store.codec import values
from holdfast.store.codec.vault import guard, vault
from holdfast.store.codec.veil import is_clean, text_bytes

_DIGEST: Final = 0
_CANONICAL: Final = 1

_TEXT: Final = frozenset({str})

_pack: Final = msgspec.msgpack.Encoder().encode

# How msgpack begins an array of up to `GROUP` items, and the item of a digest.
_ARRAY_HEADS: Final = tuple(
    _pack([None] * count).removesuffix(_pack(None) * count) for count in range(GROUP + 1)
)
_DIGEST_HEAD: Final = _pack(Ext(_DIGEST, bytes(32)))[:-32]

_known_digest: Final = attrgetter("hf_hash")


def digest(value: object, *, path: str = "value", flats: Flats | None = None) -> bytes:
    """Give the 32 bytes that say what `value` is; `NotStorable`, with its place, if none do.

    A tracked container remembers its digest and those of its parts, so after a small change only
    what changed is hashed. Of a plain list, `flats` remember the messages in it.
    """
    try:
        if flats is not None and type(value) is list:
            return _hash_given(value, flats)
        hash_kind = _KINDS.get(type(value))
        return (_hash(value) if hash_kind is None else hash_kind(value))[0]
    except errors.NotStorable as error:
        raise _with_place(value, path, error) from None
    except RecursionError:
        why = "it contains itself, or is nested too deep"
        kind = KINDS.get(type(value), type(value))
        raise errors.NotStorable(path, kind.__name__, why) from None


def _hash(value: object) -> tuple[bytes, bool]:
    """Give the digest and whether it stays true until a tracked container is changed."""
    hash_kind = _KINDS.get(type(value))
    if hash_kind is not None:
        return hash_kind(value)
    tokens, is_stable = _tokens((value,))
    return sha256(b"v" + _packed(tokens)).digest(), is_stable


def _hash_tracked(value: Value) -> tuple[bytes, bool]:
    is_list = type(value) is TrackedList
    tracker: Tracker | None = value.hf_tracker
    if tracker is None or tracker is LOOSE:
        # Nobody's lock is held here, so nothing is remembered that another thread could belie.
        return (_hash_list(value) if is_list else _hash_dict(value))[0], False
    with tracker.lock:
        known = value.hf_hash
        if type(known) is bytes:
            return known, True
        if known is not None and known.root is not None:
            return known.root, True
        if len(value) > GROUP:
            hash_cached = _hash_list_cached if is_list else _hash_dict_cached
            return hash_cached(value, tracker.shadows)
        hash_kind = _hash_list if is_list else _hash_dict
        found, is_stable = hash_kind(value, tracker.shadows)
        value.hf_hash = found if is_stable else None
        return found, is_stable


def _hash_list(items: list[Any], shadows: Shadows | None = None) -> tuple[bytes, bool]:
    length = len(items)
    if length <= GROUP:
        packed = _packed_digests(items)
        if packed is not None:
            return sha256(b"l" + packed).digest(), True
        tokens, is_stable = _tokens(items, shadows)
        return sha256(b"l" + _packed(tokens)).digest(), is_stable
    groups = [_hash_group(items, shadows, group) for group in range(-(-length // GROUP))]
    return _hash_all(b"L", groups, length)


def _hash_group(items: list[Any], shadows: Shadows | None, group: int) -> tuple[bytes, bool]:
    if native.hash_items is not None and type(items) is TrackedList:
        start, tracker = group * GROUP, items.hf_tracker
        found = native.hash_items(items, start, start + GROUP, b"", tracker, vault.signs)
        if found is not None:
            return found, True
    part = items[group * GROUP : (group + 1) * GROUP]
    packed = _packed(part) if BASIC.issuperset(map(type, part)) else _packed_digests(part)
    if packed is not None:
        return sha256(packed).digest(), True
    tokens, is_stable = _tokens(part, shadows)
    return sha256(_packed(tokens)).digest(), is_stable


def _packed_digests(items: list[Any]) -> bytes | None:
    """Give what `_packed(_tokens(items))` would, if all are containers that know their digests."""
    try:
        known = list(map(_known_digest, items))
    except AttributeError:
        return None
    unknown = len(known) - list(map(type, known)).count(bytes)
    at = len(known)
    while unknown:  # They mostly stand at the end.
        at -= 1
        if type(known[at]) is not bytes:
            known[at], is_stable = _hash_tracked(items[at])
            if not is_stable:
                return None
            unknown -= 1
    return _ARRAY_HEADS[len(known)] + _DIGEST_HEAD.join((b"", *known))


def _hash_given(items: list[Any], flats: Flats) -> bytes:
    """Hash a plain list of which most items were hashed before."""
    length = len(items)
    flats.prepare(length, vault.declared)
    if length <= GROUP:
        packed = _packed_given(items, flats)
        return _hash_list(items)[0] if packed is None else sha256(b"l" + packed).digest()
    groups = b""
    for at in range(0, length, GROUP):
        part = items[at : at + GROUP]
        packed = _packed_given(part, flats)
        groups += _hash_group(part, None, 0)[0] if packed is None else sha256(packed).digest()
    return hash_groups(b"L", groups, length)


def _packed_given(items: list[Any], flats: Flats) -> bytes | None:
    """Give what `_packed(_tokens(items))` would, if all are containers."""
    found: list[bytes] = []
    for item in items:
        kind = type(item)
        if kind is dict or kind is TrackedDict:
            found.append(_hash_message(item, flats))
        elif kind in _KINDS:
            found.append(_KINDS[kind](item)[0])
        else:
            return None
    return _ARRAY_HEADS[len(found)] + _DIGEST_HEAD.join((b"", *found))


def _hash_message(mapping: dict[Any, Any], flats: Flats) -> bytes:
    names = list(mapping)
    held = [*names, *mapping.values()]
    found = flats.recall(mapping, held)
    if found is not None:
        return found
    of_names = held[len(names) :]
    is_flat = _TEXT.issuperset(map(type, names)) and BASIC.issuperset(map(type, of_names))
    if is_flat and len(names) == len(of_names) <= GROUP:
        pairs = dict(zip(names, of_names, strict=True))
        names.sort()
        data = _quick([*names, *map(pairs.__getitem__, names)])
        if data is not None:
            found = sha256(b"d" + data).digest()
            flats.keep(mapping, held, found)
            return found
    return _KINDS[type(mapping)](mapping)[0]


def _hash_all(kind: bytes, groups: list[tuple[bytes, bool]], length: int) -> tuple[bytes, bool]:
    found = hash_groups(kind, b"".join(group for group, _ in groups), length)
    return found, all(is_stable for _, is_stable in groups)


def _hash_list_cached(items: TrackedList, shadows: Shadows) -> tuple[bytes, bool]:
    cache = items.hf_hash
    if not isinstance(cache, ListCache):
        cache = items.hf_hash = ListCache()
    if native.hash_list is not None:
        found = native.hash_list(items, cache, items.hf_tracker, vault.signs)
        if found is not None:
            return found, True
    if cache.children_stale:
        for at in _places_of(items, cache.children_stale):
            cache.forget(at // GROUP)
        cache.children_stale.clear()
    length = len(items)
    count = -(-length // GROUP)
    return cache.complete(b"L", count, length, partial(_hash_group, items, shadows))


def _places_of(items: TrackedList, wanted: set[int]) -> Iterable[int]:
    """Find the items with the identities `wanted`, from the end, where changes mostly are."""
    left = set(wanted)
    at = len(items)
    for item in reversed(items) if left else ():
        at -= 1
        if id(item) in left:
            yield at
            if type(item.hf_up) is not dict:  # linked once: it stands nowhere else in the list
                left.discard(id(item))
                if not left:
                    return


def _hash_dict(mapping: dict[Any, Any], shadows: Shadows | None = None) -> tuple[bytes, bool]:
    length = len(mapping)
    if length <= GROUP:
        if native.hash_flat is not None:
            found = native.hash_flat(mapping, vault.signs)
            if found is not None:
                return found, True
        if _TEXT.issuperset(map(type, mapping)) and BASIC.issuperset(map(type, mapping.values())):
            names = sorted(mapping)  # As `_bucket` does it: most messages are such dicts.
            data = _quick([*names, *map(mapping.__getitem__, names)])
            if data is not None:
                return sha256(b"d" + data).digest(), True
        packed, is_stable = _bucket(mapping, mapping, shadows)
        return sha256(b"d" + packed).digest(), is_stable
    groups = [_hash_bucket(mapping, keys, shadows) for keys in _members(mapping)]
    return _hash_all(b"D", groups, length)


def _hash_dict_cached(mapping: TrackedDict, shadows: Shadows) -> tuple[bytes, bool]:
    cache = mapping.hf_hash
    if not isinstance(cache, DictCache):
        cache = mapping.hf_hash = DictCache()
    count = buckets_for(len(mapping))
    if len(cache.members) != count:
        cache.members = _members(mapping)
        cache.forget_from(0)
    else:
        _move_touched(mapping, cache, count)
    cache.touched.clear()
    cache.children_stale.clear()
    members, length = cache.members, len(mapping)
    return cache.complete(
        b"D", count, length, lambda bucket: _hash_bucket(mapping, members[bucket], shadows)
    )


def _move_touched(mapping: TrackedDict, cache: DictCache, count: int) -> None:
    for key in cache.touched:
        bucket = _bucket_of(key, count)
        cache.forget(bucket)
        if key in mapping:
            cache.members[bucket][key] = None
        else:
            cache.members[bucket].pop(key, None)
    if cache.children_stale:
        for key, item in mapping.items():
            if id(item) in cache.children_stale:
                cache.forget(_bucket_of(key, count))


def _members(mapping: dict[Any, Any]) -> list[dict[object, None]]:
    count = buckets_for(len(mapping))
    members: list[dict[object, None]] = [{} for _ in range(count)]
    for key in mapping:
        members[_bucket_of(key, count)][key] = None
    return members


def _bucket_of(key: object, count: int) -> int:
    if type(key) is str:
        return crc32(key.encode("utf-8", "surrogatepass")) % count
    return crc32(_packed(_tokens((key,))[0])) % count


def _hash_bucket(
    mapping: dict[Any, Any], keys: Iterable[object], shadows: Shadows | None
) -> tuple[bytes, bool]:
    packed, is_stable = _bucket(mapping, keys, shadows)
    return sha256(packed).digest(), is_stable


def _bucket(
    mapping: dict[Any, Any], keys: Iterable[Any], shadows: Shadows | None
) -> tuple[bytes, bool]:
    """Pack the keys, sorted, and then their values."""
    names = list(keys)
    if _TEXT.issuperset(map(type, names)):
        names.sort()
        found = [mapping[name] for name in names]
        tokens, is_stable = found, True
        if not BASIC.issuperset(map(type, found)):
            tokens, is_stable = _tokens(found, shadows)
        data = _quick(names + tokens)
        if data is not None:
            return data, is_stable
        if not any(map(_holds_secret, names)):
            return _careful(names + tokens), is_stable
    rows = sorted(((_packed(_tokens((name,))[0]), name) for name in names), key=itemgetter(0))
    tokens, is_stable = _tokens([mapping[name] for _, name in rows], shadows)
    # A number first tells these bytes from those of keys that are all text.
    return _packed([0, *(packed for packed, _ in rows), *tokens]), is_stable


def _tokens(items: Iterable[Any], shadows: Shadows | None = None) -> tuple[list[Any], bool]:
    """Give what stands for each item in the hashed bytes, and whether all of it stays true.

    With `shadows`, an item that may change in place is encoded only if it did.
    """
    tokens = []
    is_stable = True
    for item in items:
        kind = type(item)
        if kind in BASIC:
            tokens.append(item)
        elif kind in KINDS and type(known := item.hf_hash) is bytes:
            tokens.append(Ext(_DIGEST, known))
        elif (hash_kind := _KINDS.get(kind)) is not None:
            found, is_item_stable = hash_kind(item)
            tokens.append(Ext(_DIGEST, found))
            is_stable = is_stable and is_item_stable
        elif shadows is None or is_fixed(item):
            tokens.append(Ext(_CANONICAL, values.canonical(item, path="")))
            is_stable = is_stable and is_fixed(item)
        else:
            tokens.append(Ext(_CANONICAL, shadows.canonical(item)))
            is_stable = False
    return tokens, is_stable


def _packed(tokens: list[Any]) -> bytes:
    data = _quick(tokens)
    return _careful(tokens) if data is None else data


def _quick(tokens: list[Any]) -> bytes | None:
    """Pack tokens as they are, or say that some are the codec's business."""
    try:
        data = _pack(tokens)
    except (UnicodeEncodeError, OverflowError):
        return None  # Lone surrogates and integers beyond 64 bits.
    # Secrets: what is hashed is what is stored, so that a renewed one changes nothing.
    return None if vault.may_hold(data) and guard.get().cuts else data


def _careful(tokens: list[Any]) -> bytes:
    return _pack([_packable(token) for token in tokens])


def _holds_secret(text: str) -> bool:
    """Say whether a key is stored without the secret in it, and so is no text."""
    return guard.get().cuts and not is_clean(text_bytes(text))


def _packable(token: object) -> object:
    return token if is_packable(token) else Ext(_CANONICAL, values.canonical(token, path=""))


_KINDS: Final[dict[type, Callable[[Any], tuple[bytes, bool]]]] = {
    dict: _hash_dict,
    list: _hash_list,
    TrackedDict: _hash_tracked,
    TrackedList: _hash_tracked,
}


def _with_place(value: Value, path: str, error: errors.NotStorable) -> errors.NotStorable:
    """Find which leaf was refused; the way down is walked only when something is wrong."""
    if type(value) not in _KINDS:
        try:
            values.canonical(value, path=path)
        except errors.NotStorable as found:
            return found
        return errors.NotStorable(path, error.type_name, error.why)
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in pairs:
        for part in (key, item):
            try:
                _hash(part)
            except errors.NotStorable as found:
                return _with_place(part, path + step(key), found)
    return errors.NotStorable(path, error.type_name, error.why)
