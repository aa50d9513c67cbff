"""Text and bytes with secrets in them: what is stored, what comes back."""

import base64
import json
import pathlib
from decimal import Decimal
from typing import Any
from urllib.parse import quote, quote_plus

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import holdfast
from holdfast.errors import NotStorable
from holdfast.store.codec import forms, values
from holdfast.store.codec.secret import Secret
from holdfast.store.codec.vault import Guard, Part, Vault, guarded, vault
from holdfast.store.codec.veil import Veiled, VeiledBytes, cut, redact

VALUE = "p@ss wörd/2026+kelp&rock"
RAW = VALUE.encode()


@pytest.fixture(autouse=True)
def secret(monkeypatch: pytest.MonkeyPatch) -> Secret:
    monkeypatch.setattr(vault, "__dict__", vars(Vault(environment={"SHOP_KEY": VALUE})))
    return holdfast.secret("env:SHOP_KEY")


FORMS: list[Any] = [
    VALUE,
    f"before {VALUE} between {VALUE} after",
    RAW,
    bytearray(RAW),
    {VALUE: {"deep": [VALUE]}},
    {(1, VALUE): 2},
    {VALUE, "other"},
    frozenset({RAW}),
    (VALUE, 1),
    RAW.hex(),
    RAW.hex().upper(),
    quote(VALUE, safe=""),
    quote(VALUE),
    "p%40ss%20w%c3%b6rd%2f2026%2bkelp%26rock",
    quote_plus(VALUE),
    json.dumps({"key": VALUE}),
    json.dumps({"key": VALUE}, ensure_ascii=False),
    base64.b64encode(RAW).decode(),
    base64.b64encode(b"u:" + RAW),
    base64.urlsafe_b64encode(b"user:" + RAW + b"!").decode(),
    pathlib.PurePosixPath("/keys") / RAW.hex() / "x",
    f"lone \ud800 {VALUE}",
]


@pytest.mark.parametrize("value", FORMS, ids=range(len(FORMS)))
def test_a_known_secret_comes_back_exact_in_every_form(value: object) -> None:
    data = values.encode(value)
    back = values.decode(data)

    assert value == back
    assert type(value) is type(back)
    assert not vault.holds_known(data)
    assert values.canonical(value) == values.canonical(back)


@pytest.mark.parametrize("value", FORMS, ids=range(len(FORMS)))
def test_a_reader_without_the_secret_sees_where_it_stood_and_stores_it_as_before(
    value: object,
) -> None:
    data = values.encode(value)

    with guarded(Guard(resolves=False)) as guard:
        read = values.decode(data)

    assert guard.gaps
    assert "secret env:SHOP_KEY" in repr(read)
    assert VALUE not in repr(read)
    if not isinstance(value, bytearray | pathlib.PurePath):
        assert len(data) == len(values.encode(read))  # a set has no order
        assert values.canonical(value) == values.canonical(read)


def test_arrays_of_text_keep_their_cells() -> None:
    array = np.array([["a", VALUE], ["b", f"x{VALUE}"]])
    codes = np.array([RAW, b"b"])

    data = values.encode({"text": array, "bytes": codes})
    back: Any = values.decode(data)

    assert np.array_equal(array, back["text"])
    assert np.array_equal(codes, back["bytes"])
    assert (array.dtype, codes.dtype) == (back["text"].dtype, back["bytes"].dtype)
    assert not vault.holds_known(data.replace(b"\0", b""))


def test_text_in_a_structured_array_is_refused() -> None:
    array = np.array([(1, "AKIA" + "ABCD2345" * 2)], dtype=[("n", "i4"), ("key", "U40")])

    with pytest.raises(NotStorable, match="cannot be cut out"):
        values.encode(array)


def test_numbers_are_not_searched() -> None:
    array = np.frombuffer(("AKIA" + "ABCD2345" * 2 + "    ").encode() * 10, dtype="f8")

    assert np.array_equal(array, values.decode(values.encode(array)))  # type: ignore[arg-type]


def test_a_secret_where_it_cannot_be_cut_out_is_refused() -> None:
    holdfast.secret("name:number", value="123456789.25")

    with pytest.raises(NotStorable, match="cannot be cut out"):
        values.encode([Decimal("123456789.25")])


def test_a_secret_is_stored_as_its_reference() -> None:
    key = holdfast.secret("env:SHOP_KEY")

    data = values.encode([key])
    back: Any = values.decode(data)

    assert b"env:SHOP_KEY" in data
    assert (Secret, VALUE) == (type(back[0]), back[0].reveal())
    assert "env:SHOP_KEY" == back[0].reference


def test_what_a_secret_was_before_is_known_too() -> None:
    vault._environment = {"SHOP_KEY": "renewed and kept"}  # noqa: SLF001 the program's environment
    holdfast.secret("env:SHOP_KEY")

    assert "renewed and kept" == values.decode(values.encode(VALUE))


def test_short_secrets_are_references_but_are_not_looked_for() -> None:
    key = holdfast.secret("name:pin", value="4711")

    assert "4711" == values.decode(values.encode(key))
    assert "order 4711" == redact("order 4711")


def test_pieces_are_cut_at_the_longest_known_value() -> None:
    holdfast.secret("name:long", value=f"{VALUE} and more")

    assert (Part("name:long"),) == cut(f"{VALUE} and more".encode())


def test_veiled_values_are_text_and_bytes() -> None:
    pieces = (b"a ", Part("env:X"), b" b")

    assert "a <secret env:X> b" == Veiled(pieces)
    assert b"a <secret env:X> b" == VeiledBytes(pieces)


@given(
    value=st.binary(min_size=8, max_size=40),
    before=st.binary(max_size=9),
    after=st.binary(max_size=9),
)
def test_what_base64_shows_of_a_secret_is_found_wherever_it_begins(
    value: bytes, before: bytes, after: bytes
) -> None:
    text = base64.b64encode(before + value + after)

    shift = len(before) % 3
    needle = forms.render(forms.Form.BASE64, shift, value)

    assert needle in text
    assert len(value) * 8 // 6 - 2 <= len(needle)
