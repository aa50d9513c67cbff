"""`holdfast keys`: encrypt a store, give it new keys, or show which it has."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from holdfast.cli.bars import progress_bar
from holdfast.cli.config import Config
from holdfast.cli.grid import Grid
from holdfast.cli.noun import Noun
from holdfast.cli.options import AsJson, Key, Output, StorePath, closing, settings
from holdfast.cli.output import emit, tell
from holdfast.cli.text import plural
from holdfast.clock import SystemClock
from holdfast.engine.given import given_key
from holdfast.errors import KeyUnusable, StoreNotFound
from holdfast.store.backends.fs import RealFs
from holdfast.store.keys.local import make_file
from holdfast.store.keys.spec import FORMS, provider_of
from holdfast.store.open import Opened, open_store
from holdfast.store.rekey import clean, encrypt, rotate
from holdfast.store.repair.rebuild import LOST
from holdfast.store.seal.provider import KeyProvider
from holdfast.store.seal.unlock import Facts, facts

CLOSING = closing(
    (
        "holdfast keys new ~/holdfast.key",
        "holdfast keys init --key file:~/holdfast.key",
        "holdfast keys rotate --new file:~/new.key",
        "holdfast keys list --json",
    ),
    (0, 1, 2, 3, 7, 8),
)
NEW_PASSPHRASE = "HOLDFAST_NEW_PASSPHRASE"  # noqa: S105 the name of a variable

keys = typer.Typer(
    cls=Noun,
    epilog=CLOSING,
    rich_markup_mode=None,
    add_completion=False,
    help="Keys of a store; without an act, `keys` is `keys list`.",
)


@keys.callback()
def _noun() -> None:
    """Keys of a store."""


@keys.command("list", epilog=CLOSING)
def list_(
    *, store: StorePath = None, key: Key = None, output: Output = None, as_json: AsJson = False
) -> None:
    """Show whether the store is encrypted, and with which keys. Needs no key itself."""
    config = settings(store, output, key=key, as_json=as_json)
    _tell(config, facts(config.store), "")


@keys.command("new", epilog=CLOSING)
def new(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The key file to make.")],
    *,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Make a key file, readable for you alone.

    Keep a copy where a fire at one place does not reach both: without its key nobody can read an
    encrypted store.
    """
    config = settings(None, output, as_json=as_json)
    make_file(file.expanduser(), RealFs())
    told = {"file": str(file)}
    emit(config.output, document=told, lines=[told], grids=[f"{file}: a new key; keep a copy"])


@keys.command("init", epilog=CLOSING)
def init(
    *, store: StorePath = None, key: Key = None, output: Output = None, as_json: AsJson = False
) -> None:
    """Make the store an encrypted one: a new one, or one that is there, in place.

    Nobody else may have the store open meanwhile, and it takes about as much free space as the
    store has bytes. A kill leaves it as it was, or encrypted: doing it again goes on.
    """
    config = settings(store, output, key=key, as_json=as_json)
    provider = given_key()
    if provider is None:
        raise KeyUnusable("", f"no key was named; --key takes {FORMS}")
    try:
        before = facts(config.store)
    except StoreNotFound:
        before = None
    if before is None:
        open_store(config.store, SystemClock(), key=provider).close()
        done = "a new store, encrypted"
    elif before.is_encrypted:
        with _alone(config.store, provider) as opened:
            left = clean(opened)
        done = f"encrypted already; {plural(left, 'file')} in clear removed"
    else:
        with _alone(config.store, None) as opened, progress_bar("encrypting") as progress:
            encrypt(opened, provider, progress)
        done = "encrypted in place"
    if before is not None and (config.store / LOST).exists():
        tell(f"{config.store / LOST} holds what repairs moved aside, perhaps in clear: remove it")
    _tell(config, facts(config.store), done)


@keys.command("rotate", epilog=CLOSING)
def rotate_(
    *,
    new: Annotated[
        str | None,
        typer.Option(
            "--new",
            metavar="KEY",
            help="The key to be used from now on; without it the present one stays. "
            f"`passphrase` is read from ${NEW_PASSPHRASE}, or typed.",
        ),
    ] = None,
    data: Annotated[
        bool, typer.Option("--data", help="Also give every run a new key and seal all rows anew.")
    ] = False,
    store: StorePath = None,
    key: Key = None,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Give an encrypted store a new store key, wrapped with the same key as before or a new one.

    Nobody else may have the store open meanwhile. A kill leaves the old keys or the new ones in
    force, never something between: keep the old key until this has ended.
    """
    config = settings(store, output, key=key, as_json=as_json)
    present = given_key()
    wanted = present
    if new is not None:
        wanted = provider_of(new, os.environ, NEW_PASSPHRASE, "new passphrase of the store")
    with _alone(config.store, present) as opened:
        if wanted is None or not opened.records.is_sealed:
            raise KeyUnusable("", "the store is not encrypted; `holdfast keys init` does it")
        with progress_bar("rotating") as progress:
            rotate(opened, wanted, data=data, progress=progress)
    _tell(config, facts(config.store), "rotated")


@contextlib.contextmanager
def _alone(path: Path, key: KeyProvider | None) -> Iterator[Opened]:
    opened = open_store(path, SystemClock(), key=key, must_exist=True, alone=True)
    try:
        yield opened
    finally:
        opened.close()


def _tell(config: Config, found: Facts, done: str) -> None:
    told: dict[str, Any] = {
        "store": str(config.store),
        "encrypted": found.is_encrypted,
        "key": found.key,
        "kind": found.kind,
        "runs": found.runs,
    }
    rows = [("store", str(config.store)), ("encrypted", "yes" if found.is_encrypted else "no")]
    if found.is_encrypted:
        rows += [
            ("key", f"{found.key}, kept by: {found.kind}"),
            ("runs with a key", str(found.runs)),
        ]
    if done:
        told["done"] = done
        rows.append(("done", done))
    emit(
        config.output,
        document={"keys": told},
        lines=[told],
        grids=[Grid(columns=("", " "), rows=rows, has_header=False)],
    )
