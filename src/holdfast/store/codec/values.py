"""Any storable value ↔ bytes: equal and of the same type when it comes back.

An encoded value is one form byte and one msgpack object.

Form 0, plain: nil, bool, integers of 64 bits, float64, text, bytes, lists (array) and dicts whose
keys are all text (map). Form 1, items: besides, extension items that are a whole value. Form 2,
nodes: besides, arrays whose first item is an extension item of no length, which says what the array
is, and references: extension items whose bytes are the number of an array or map of the same
value, counted from 0 in the order in which they begin. What is not listed is not written, and
refused when read.

| code | item | its bytes (text, integer, array: see `leaves`) |
|---|---|---|
| 1 | int beyond 64 bits | integer |
| 2 | str with lone surrogates | text |
| 3 | datetime | array: year, month, day, hour, minute, second, microsecond, fold, zone |
| 4 | date | array: year, month, day |
| 5 | time | array: hour, minute, second, microsecond, fold, zone |
| 6 | timedelta | array: days, seconds, microseconds |
| 7 | Decimal | `str()` of it, in ASCII |
| 8 | UUID | its 16 bytes |
| 9 | complex | real and imaginary part, float64 big-endian each |
| 10 | range | array: start, stop, step as integers in bytes |
| 11 | path | array: class name (`PosixPath`, ...), text in bytes |
| 12 | time zone by itself | zone |
| 13 | msgspec.UNSET | none |
| 14 | NumPy scalar | array: dtype (see `arrays`), bytes; or `S`, bytes; or `U`, text in bytes |
| 15 | secret | array: reference, when it expires or nil |
| 16 | text, bytes or path without its secrets | array: what (0, 1, 2), pieces, class of a path |
| 48 | reference | its number, 4 bytes big-endian |

A zone is nil, the key of a ZoneInfo as text, or an array: days, seconds, microseconds of a fixed
offset and, where one was given, its name as text in bytes.

| code | node | the items after the code |
|---|---|---|
| 32 | tuple | its items |
| 33 | dict with a key that is no text | key, value, key, value ... |
| 34, 35 | set, frozenset | its items |
| 36 | bytearray | bytes |
| 37 | registered object | name, version, fields as a map (or what `encode=` gave), rest |
| 38 | NumPy array | bytes of an array: dtype, shape; the bytes in C order |

Fields of an enum are `name`, of a flag `value`. The rest is there for Pydantic models only: a map
of `set` (names of the fields that were set), `extra`, `private` and, where fields have no value at
all, `unset` (their names).

The canonical form is the same without the form byte and without sharing; the keys of maps are
sorted by their UTF-8 bytes, items of sets and pairs of a node 33 by their canonical bytes; versions
are 0, and the rest of a Pydantic model is without `set` and `unset`.
"""

from collections.abc import Callable
from typing import Any, Final, TypeAlias, TypeVar, overload

import msgspec

from holdfast import errors, native
from holdfast.model.parts import Usage
from holdfast.store.codec import arrays, lift, wire
from holdfast.store.codec.lower import Judged, Lowering, is_built_in, is_plain, sorted_bytes
from holdfast.store.codec.registry import Change, Registry
from holdfast.store.codec.vault import guard, vault
from holdfast.store.codec.wire import Leak, Refusal, name_of, told

__all__ = [
    "MAX_VALUE_BYTES",
    "canonical",
    "decode",
    "encode",
    "learn",
    "migrate",
    "register",
    "registry",
]

Place: TypeAlias = str | Callable[[], str]
"""Where a value stands; found only when it is asked for."""

T = TypeVar("T")
C = TypeVar("C", bound=Change)

MAX_VALUE_BYTES: Final = wire.MAX_VALUE_BYTES

registry: Final = Registry()
"""The classes that this process may store."""
registry.register(Usage, name="holdfast:Usage")  # What `run.usage()` gives.

_FORM_BYTES: Final = tuple(bytes([form]) for form in range(3))
_encode_tree = msgspec.msgpack.Encoder().encode
_decode_plain = msgspec.msgpack.Decoder(ext_hook=lift.refuse_item).decode
_decode_items = msgspec.msgpack.Decoder(ext_hook=lift.read_item).decode
_decode_nodes = msgspec.msgpack.Decoder(ext_hook=lift.read_item_or_mark).decode


def encode(value: object, *, path: "Place" = "value") -> bytes:
    """The bytes of `value`; raise `NotStorable`, naming its place below `path`, if it has none.

    Secrets are cut out; what only looks like one is cut out, let stand or refused as `guard` says.
    """
    if native.encode is not None:
        quick = native.encode(value, vault.signs)
        if quick is not None and len(quick) <= MAX_VALUE_BYTES:
            return quick
    form, data = _packed(value, path, canonical=False)
    return form + data


def canonical(value: object, *, path: str = "value") -> bytes:
    """Bytes for hashing: the same for two values if and only if content and types are the same.

    The order of a dict and whether containers are shared do not matter; True, 1 and 1.0 differ;
    floats are compared by their bits.
    """
    return _packed(value, path, canonical=True)[1]


def decode(data: bytes, *, where: str = "value") -> object:
    """The value of `data`.

    Raise `Damaged` for bytes that `encode` never gave, `NotStorable` for a class, version or time
    zone that this process does not know.
    """
    try:
        guard.get().look(data)
        form, body = data[0], memoryview(data)[1:]
        if form == wire.FORM_PLAIN:
            return _decode_plain(body)
        if form == wire.FORM_ITEMS:
            return _decode_items(body)
        if form == wire.FORM_NODES:
            return lift.Lift(registry).lift(_decode_nodes(body))
    except Refusal as refusal:
        raise errors.NotStorable(where, refusal.type_name, refusal.why) from refusal
    except errors.SecretMissing:
        raise
    except RecursionError as error:
        raise errors.Damaged(where, "it is nested too deep, or the stack is nearly full") from error
    except MemoryError:
        raise
    except Exception as error:
        raise errors.Damaged(where, f"no value can be read from it ({told(error)})") from error
    raise errors.Damaged(where, f"it has form {form}, which this Holdfast does not know")


@overload
def register(
    cls: type[T],
    *,
    name: str | None = None,
    version: int = 1,
    encode: Callable[[T], object] | None = None,
    decode: Callable[[Any], T] | None = None,
) -> type[T]: ...
@overload
def register(
    cls: None = None,
    *,
    name: str | None = None,
    version: int = 1,
    encode: Callable[[Any], object] | None = None,
    decode: Callable[[Any], Any] | None = None,
) -> Callable[[type[T]], type[T]]: ...
def register(
    cls: type[Any] | None = None,
    *,
    name: str | None = None,
    version: int = 1,
    encode: Callable[[Any], object] | None = None,
    decode: Callable[[Any], Any] | None = None,
) -> Any:
    """Let instances of a class be stored: a call, or a decorator of the class.

    It is stored under `name` ("module:qualname" unless given) in `version`; what was stored in an
    older one passes through `migrate`. `encode` and `decode` teach any class; without them it is a
    dataclass, Enum, named tuple, Pydantic model or msgspec Struct.
    """

    def keep(known: type[Any]) -> type[Any]:
        if is_built_in(known):
            raise errors.UsageError(f"{name_of(known)} is stored as it is; it needs no register")
        registry.register(known, name=name, version=version, encode=encode, decode=decode)
        return known

    return keep if cls is None else keep(cls)


def migrate(kind: str | type, *, from_: int, to: int) -> Callable[[C], C]:
    """Decorate the function that turns the stored fields of version `from_` into those of `to`.

    `kind` is the class or the name under which it is registered. The function gets the fields as a
    dict (or what `encode=` gave) and returns them as version `to` has them.
    """
    return registry.migrate(kind, from_=from_, to=to)


def learn(annotation_owner: Callable[..., object]) -> None:
    """Let the classes that a function names in its annotations be stored.

    Costs nothing now: the annotations are read when the first unknown class is met.
    """
    registry.learn(annotation_owner)


def _packed(value: object, path: Place, *, canonical: bool) -> tuple[bytes, bytes]:
    """The form byte and the msgpack bytes of `value`, its secrets cut out."""
    pack = sorted_bytes if canonical else _encode_tree
    form = wire.FORM_PLAIN
    try:
        data = _plain_bytes(value, pack)
        may_hold = data is not None and vault.may_hold(data)
        if data is None:
            lowering = Lowering(registry, canonical=canonical)
            tree = lowering.lower(value)
            form, data = lowering.form, pack(tree)
            is_numbers = arrays.is_array(type(value)) and not lowering.holds_secret
            may_hold = lowering.holds_secret or (not is_numbers and vault.may_hold(data))
        if may_hold and guard.get().cuts:
            form, data = _veiled(value, path, pack, canonical=canonical)
    except Refusal as refusal:
        place = refusal.place(_told(path))
        raise errors.NotStorable(place, refusal.type_name, refusal.why) from refusal.__cause__
    except RecursionError as error:
        why = "it is nested too deep for what is left of the stack"
        raise errors.NotStorable(_told(path), name_of(type(value)), why) from error
    if len(data) >= MAX_VALUE_BYTES:
        why = f"it has {len(data):,} bytes, more than {MAX_VALUE_BYTES:,}; keep it in a file"
        raise errors.NotStorable(_told(path), name_of(type(value)), why)
    return _FORM_BYTES[form], data


def _veiled(
    value: object, path: Place, pack: Callable[[object], bytes], *, canonical: bool
) -> tuple[int, bytes]:
    """Form and bytes of a value in which a secret may stand; what is undeclared is judged."""
    judged = Judged()
    while True:
        lowering = Lowering(registry, canonical=canonical, judged=judged)
        try:
            data = pack(lowering.lower(value))
        except Leak as leak:
            judged.may_stay[leak.data] = guard.get().judge(leak.place(_told(path)), leak.kind)
            continue
        if vault.holds_known(data) and not any(judged.may_stay.values()):
            why = "a secret stands in it, where it cannot be cut out; keep it out of what is stored"
            raise Refusal(name_of(type(value)), why)
        return lowering.form, data


def _told(path: Place) -> str:
    return path if isinstance(path, str) else path()


def _plain_bytes(value: object, pack: Callable[[object], bytes]) -> bytes | None:
    """What msgpack makes of `value` if that loses nothing."""
    if not is_plain(value):
        return None
    try:
        return pack(value)
    except (ValueError, OverflowError):
        return None  # a lone surrogate, or an int beyond 64 bits: the walk gives each its item
