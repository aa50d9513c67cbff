"""A store encrypted with one flag: nothing in clear, and no way around the key."""

import contextlib
import shutil
from pathlib import Path

import pytest

import holdfast
from holdfast.errors import Damaged, KeyNeeded, NotEncrypted, UsageError, WrongKey
from holdfast.report.sizes import entries
from holdfast.store.codec.frame import is_sealed
from tests.sealed import kit
from tests.unit.store.builders import tampering


@pytest.fixture(scope="module")
def _made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("made") / "store"
    kit.fill(path, turns=60)
    return path


@pytest.fixture
def path(_made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(_made, tmp_path / "store"))


def test_nothing_that_the_user_wrote_stands_in_any_file(path: Path, tmp_path: Path) -> None:
    kit.fill(tmp_path / "open", None)
    assert {word.encode() for word in kit.WORDS} == {
        word for _, word in kit.found_in(tmp_path / "open", *kit.WORDS)
    }

    assert [] == kit.found_in(path, *kit.WORDS, "keeper", "tests.sealed")
    assert all(is_sealed(data) for file, data in kit.files(path).items() if "objects" in file.parts)
    with tampering(path) as link:
        for table, number, key in kit.rows(link):
            if table != "key":
                [body] = link.execute(f"SELECT body FROM {table} WHERE {key}={number}").fetchone()
                assert is_sealed(body)


def test_nothing_stands_in_the_log_while_the_store_is_open(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with holdfast.open(path, key=kit.KEY) as store:
        store.run(kit.keeper, "planted-argument", id="planted-run")

        assert (path / "store.db-wal").stat().st_size
        assert [] == kit.found_in(path, *kit.WORDS)


def test_an_encrypted_store_is_whole_and_restores_as_an_open_one_does(
    path: Path, tmp_path: Path
) -> None:
    kit.fill(tmp_path / "open", None, turns=60)

    assert [] == kit.findings(path)
    assert list(kit.states(tmp_path / "open", None).values()) == list(kit.states(path).values())


def test_without_its_key_a_store_is_refused_and_not_changed(path: Path) -> None:
    before = kit.files(path)

    with pytest.raises(KeyNeeded, match=r"encrypted \(its key is kept by: file\).*HOLDFAST_KEY"):
        holdfast.open(path)

    assert before == kit.files(path)


def test_with_another_key_a_store_is_refused_and_not_changed(path: Path) -> None:
    before = kit.files(path)

    with pytest.raises(WrongKey, match="give the key it was encrypted with"):
        holdfast.open(path, key=kit.OTHER)

    assert before == kit.files(path)


def test_a_key_of_another_kind_is_a_wrong_key_and_no_damage(path: Path, tmp_path: Path) -> None:
    words = holdfast.Passphrase("kelp holds fast", cost=(2, 8, 1))
    other = tmp_path / "by-words"
    holdfast.open(other, key=words).close()

    with pytest.raises(holdfast.WrongKey) as by_words:
        holdfast.open(path, key=words)
    with pytest.raises(holdfast.WrongKey) as by_file:
        holdfast.open(other, key=kit.KEY)

    assert "kept by: " in str(by_words.value)
    assert "kept by: passphrase" in str(by_file.value)


def test_an_open_store_is_refused_where_a_key_is_given(tmp_path: Path) -> None:
    kit.fill(tmp_path / "open", None)

    with pytest.raises(NotEncrypted, match="holdfast keys init"):
        holdfast.open(tmp_path / "open", key=kit.KEY)


def test_the_key_may_come_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THE_KEY", "ab" * 32)
    monkeypatch.setenv("HOLDFAST_KEY", "env:THE_KEY")

    holdfast.open(tmp_path / "store").close()

    monkeypatch.delenv("HOLDFAST_KEY")
    with pytest.raises(KeyNeeded):
        holdfast.open(tmp_path / "store")
    holdfast.open(tmp_path / "store", key="env:THE_KEY").close()
    holdfast.open(tmp_path / "open", key="").close()


def test_a_passphrase_and_a_provider_of_ones_own_are_keys_too(tmp_path: Path) -> None:
    class Service:
        """A key service that lends its own wrapping."""

        kind = "our service"

        def wrap(self, key: bytes, context: bytes) -> bytes:
            return kit.KEY.wrap(key, context)

        def unwrap(self, wrapped: bytes, context: bytes, what: str) -> bytes:
            return kit.KEY.unwrap(wrapped, context, what)

    providers: list[holdfast.KeyProvider] = [holdfast.Passphrase("correct horse"), Service()]
    for number, provider in enumerate(providers):
        for _ in range(2):
            holdfast.open(tmp_path / f"{number}", key=provider).close()
        with pytest.raises(KeyNeeded, match=provider.kind):
            holdfast.open(tmp_path / f"{number}")


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE meta SET value=x'' WHERE key='incompat'",
        "DROP TABLE key",
        "DROP TABLE key; UPDATE meta SET value=x'' WHERE key='incompat'",
        "DELETE FROM key WHERE no=0",
        "UPDATE key SET body='a text' WHERE no=0",
        "UPDATE key SET body='a text' WHERE no=1",
        "UPDATE meta SET value=randomblob(16) WHERE key='store_id'",
    ],
)
def test_a_store_that_is_made_to_look_open_or_like_another_is_refused(path: Path, sql: str) -> None:
    with tampering(path) as link:
        link.executescript(sql)

    for key in (None, kit.KEY):
        with pytest.raises((Damaged, KeyNeeded, WrongKey, NotEncrypted)):
            _read_all(path, key)


def test_two_stores_with_the_same_key_share_no_name_and_no_byte_of_a_body(tmp_path: Path) -> None:
    bodies: list[set[bytes]] = []
    for name in ("one", "two"):
        kit.fill(tmp_path / name)
        with tampering(tmp_path / name) as link:
            found = {kid for (kid,) in link.execute("SELECT kid FROM run")}
            found |= {mac for (mac,) in link.execute("SELECT mac FROM j UNION SELECT mac FROM run")}
            found |= {intent for (intent,) in link.execute("SELECT intent FROM effect")}
        found |= {each.name.encode() for each in (tmp_path / name / "objects").glob("??/*")}
        bodies.append(found)

    assert bodies[0].isdisjoint(bodies[1])


def test_an_open_row_in_an_encrypted_store_is_damage(path: Path, tmp_path: Path) -> None:
    open_path = tmp_path / "open"
    kit.fill(open_path, None)
    with tampering(open_path) as link:
        mac, body = link.execute("SELECT mac, body FROM run WHERE no=1").fetchone()
    with tampering(path) as link:
        link.execute("UPDATE run SET mac=?, body=? WHERE no=1", (mac, body))

    with pytest.raises(Damaged, match="not sealed, in a store that is encrypted"):
        _read_all(path, kit.KEY)
    assert ["run number 1: it is not sealed, in a store that is encrypted"] == kit.findings(path)


def test_a_large_value_is_one_file_for_all_runs(path: Path) -> None:
    with contextlib.closing(kit.opened(path)) as found:
        before = list(found.objects.ids())
        [run, other, *_] = found.reader.runs()
        parts = [{part.what: part.count for part in entries(found, each)} for each in (run, other)]

        assert len(before) < sum(part["large values"] for part in parts)


def _read_all(path: Path, key: object) -> None:
    with holdfast.open(path, key=key or "") as store:  # type: ignore[arg-type]
        for run in store.runs():
            store.restore(run.id)


def test_a_child_process_finds_the_key_file_wherever_the_program_has_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    Path("store.key").touch(mode=0o600)
    Path("store.key").write_text("5e" * 32)
    monkeypatch.setenv("HOLDFAST_KEY", "file:store.key")

    with (
        holdfast.open("given", key="file:store.key") as given,
        holdfast.open("environment") as environment,
    ):
        monkeypatch.chdir("elsewhere")

        expected = f"file:{tmp_path / 'store.key'}"
        assert [expected, expected] == [given.terms().key, environment.terms().key]


def test_what_a_child_process_cannot_come_by_is_refused_before_one_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_PASSPHRASE", "eight characters and more")
    with (
        holdfast.open(tmp_path / "typed", key="passphrase") as typed,
        holdfast.open(tmp_path / "object", key=kit.KEY) as object_,
    ):
        assert "passphrase" == typed.terms().key
        monkeypatch.delenv("HOLDFAST_PASSPHRASE")

        with pytest.raises(UsageError, match=r"set .HOLDFAST_PASSPHRASE"):
            typed.supervise(kit.keeper, "word", id="run")
        with pytest.raises(UsageError, match="as text"):
            object_.supervise(kit.keeper, "word", id="run")
        assert [] == typed.runs()
