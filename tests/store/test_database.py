"""The store: whole runs or none, old stores read, newer ones refused."""

import errno
import os
import resource
import sqlite3
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from sqlalchemy import create_engine

from elephan.errors import InputError, StoreError, StoreUnusable
from elephan.record import Record
from elephan.store import Filter, Series, Store, default_location, open_store
from elephan.store.files import Syncs, replace_together
from elephan.store.revision import HEAD
from elephan.store.schema import Base
from elephan.store.series import digest_of, values_of

Make = Callable[..., Record]
MakeSeries = Callable[..., Series]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(str(tmp_path / "results.sqlite")) as opened:
        yield opened


def test_a_run_comes_back_as_it_was(store: Store, make_record: Make, make_series: MakeSeries) -> None:
    series = make_series(count=50, flows=2)
    record = make_record(series=series)
    store.save(record, series)
    assert store.get(record.id[:8]).to_json() == record.to_json()
    read = store.series(record.id)
    assert read is not None
    assert read.digest() == series.digest()


def test_saving_again_replaces(store: Store, make_record: Make) -> None:
    record = make_record()
    store.save(record, None)
    store.save(record.model_copy(update={"notes": ["second"]}), None)
    assert store.count() == 1
    assert store.get(record.id).notes == ["second"]


def test_a_run_of_another_build_is_not_taken_for_this_one(store: Store, make_record: Make) -> None:
    record = make_record()
    store.save(record, None)
    assert store.find(record.id, "b" * 16) is not None
    assert store.find(record.id, "c" * 16) is None


def test_list_filters_by_scenario_parameter_and_number(store: Store, make_record: Make) -> None:
    for loss in (0.0, 1e-3):
        store.save(make_record(parameters={"path.loss": loss}), None)
    store.save(make_record(seed=5, name="other"), None)
    assert len(store.list()) == 3
    assert [r.seed for r in store.list(Filter(scenario="other"))] == [5]
    assert [r.parameters["path.loss"] for r in store.list(Filter(parameters={"path.loss": "0.001"}))] == [1e-3]
    assert len(store.list(Filter(newest=1))) == 1


def test_ids_must_be_found_and_be_unique(store: Store, make_record: Make) -> None:
    first = make_record()
    store.save(first, None)
    store.save(first.model_copy(update={"id": first.id[:6] + "0" * 10}), None)
    with pytest.raises(InputError, match="several runs begin with"):
        store.get(first.id[:6])
    with pytest.raises(InputError, match="no run ffff0000"):
        store.get("ffff0000")
    with pytest.raises(InputError, match="at least its first 4"):
        store.get("ab")


def test_metrics_can_be_asked_for_in_sql(store: Store, make_record: Make, tmp_path: Path) -> None:
    store.save(make_record(goodput=2e8), None)
    with sqlite3.connect(tmp_path / "results.sqlite") as connection:
        assert connection.execute("select value from metric where name = 'goodput_bps'").fetchall() == [(2e8,)]
        assert connection.execute("pragma journal_mode").fetchone() == ("wal",)
    connection.close()


def test_migrations_make_the_tables_that_the_models_say(tmp_path: Path) -> None:
    from alembic.autogenerate import compare_metadata
    from alembic.config import Config
    from alembic.migration import MigrationContext
    from alembic.script import ScriptDirectory

    import elephan.store.migrate as module

    Store(str(tmp_path / "new.sqlite")).close()
    engine = create_engine(f"sqlite:///{tmp_path / 'new.sqlite'}")
    with engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), Base.metadata) == []
    engine.dispose()
    config = Config()
    config.set_main_option("script_location", str(Path(module.__file__).parent / "migrations"))
    assert ScriptDirectory.from_config(config).get_current_head() == HEAD


def test_a_newer_store_is_refused(tmp_path: Path) -> None:
    place = tmp_path / "results.sqlite"
    Store(str(place)).close()
    connection = sqlite3.connect(place)
    connection.execute("update alembic_version set version_num = '0999'")
    connection.commit()
    connection.close()
    with pytest.raises(StoreError, match="revision 0999; this elephan knows up to"):
        Store(str(place))


def test_a_store_that_cannot_be_leaves_nothing(tmp_path: Path) -> None:
    """A database that may only be read; and one whose series have no place."""
    with Store(str(tmp_path / "old.sqlite")) as store:
        store.must_take()
    with Store(f"sqlite:///file:{tmp_path}/old.sqlite?mode=ro&uri=true") as store:
        with pytest.raises(StoreUnusable, match="readonly"):
            store.must_take()
    assert not (tmp_path / "old.series").exists()
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreUnusable, match="for time series: not a folder"):
        Store(str(tmp_path / "new.sqlite"), tmp_path / "file")
    assert not (tmp_path / "new.sqlite").exists()
    with Store(str(tmp_path / "new.sqlite"), tmp_path / "series") as store:
        store.must_take()
    assert not (tmp_path / "series").exists()


@pytest.mark.parametrize("place", ["a/b/new.sqlite", "sqlite:///a/new.sqlite", "sqlite:///file:a/new.sqlite?uri=true"])
def test_a_folder_that_is_not_there_is_named_and_not_made(
    place: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StoreUnusable, match=r"there is no folder .*/a(/b)?; make it first: mkdir -p"):
        Store(place)
    assert not list(tmp_path.iterdir())


def test_two_commands_that_look_for_a_place_at_once_do_not_disturb_each_other(tmp_path: Path) -> None:
    """A folder that one makes to try, and removes, may be the one that the other is about to write in."""
    script = textwrap.dedent(
        """
        import sys, time
        from elephan.writability import Path, why_not_writable
        until = time.monotonic() + 2
        while time.monotonic() < until:
            if reason := why_not_writable(Path(sys.argv[1])):
                sys.exit(reason)
        """
    )
    started = [subprocess.Popen([sys.executable, "-c", script, str(tmp_path / "series")]) for _ in range(3)]
    assert [one.wait(timeout=60) for one in started] == [0, 0, 0]


def test_what_is_no_store_is_one_error(tmp_path: Path) -> None:
    (tmp_path / "text.sqlite").write_text("this is not a database, but text that is long enough to be looked at\n" * 20)
    with pytest.raises(StoreError, match="file is not a database"):
        Store(str(tmp_path / "text.sqlite"))
    with pytest.raises(StoreError, match="below.sqlite: cannot keep results there: .*text.sqlite is not a folder"):
        Store(str(tmp_path / "text.sqlite" / "below.sqlite"))
    with pytest.raises(InputError, match="not a database URL"):
        Store("://nonsense")
    with pytest.raises(InputError, match="nosuchbase"):
        Store("nosuchbase://host/name")


def test_without_a_driver_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(InputError, match="the driver psycopg is not installed; pip install"):
        Store("postgresql://nobody@localhost/nothing")


def test_a_full_disk_keeps_what_was_there_and_leaves_nothing_half(
    make_record: Make, make_series: MakeSeries, tmp_path: Path
) -> None:
    """A limit on file sizes stands for the full disk: the kernel refuses the write with an error in the same place."""
    place = tmp_path / "results.sqlite"
    first = make_record(seed=1)
    with Store(str(place)) as store:
        store.save(first, make_series(count=20))
    child = textwrap.dedent(
        f"""
        import resource, sys
        import numpy as np
        from elephan.errors import StoreError
        from elephan.record import Record
        from elephan.store import Series, Store
        record = Record.from_json(open({str(tmp_path / "second.json")!r}).read())
        noise = np.random.default_rng(1).random(200_000)
        series = Series.from_columns({{"time_s": noise}}, {{"time_s": noise}})
        with Store({str(place)!r}) as store:
            resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))
            try:
                store.save(record, series)
            except StoreError as error:
                sys.exit(f"error: {{error}}")
        """
    )
    second = make_record(seed=2)
    (tmp_path / "second.json").write_text(second.to_json())
    done = subprocess.run([sys.executable, "-c", child], capture_output=True, text=True, timeout=50, check=False)
    assert done.returncode == 1, done.stderr
    assert done.stderr.startswith("error: cannot write") and done.stderr.count("\n") == 1
    with Store(str(place)) as store:
        assert [record.id for record in store.list()] == [first.id]
    assert not list(tmp_path.rglob("*.tmp"))
    assert not list(tmp_path.rglob(f"{second.id}*"))
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY


def test_series_of_a_run_that_is_not_stored_do_not_stay(
    store: Store, make_record: Make, make_series: MakeSeries, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    record = make_record()
    monkeypatch.setattr(Record, "to_json", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        store.save(record, make_series(count=3))
    assert not list(tmp_path.rglob("*.parquet"))


def test_a_killed_process_leaves_every_stored_run(make_record: Make, tmp_path: Path) -> None:
    place = tmp_path / "results.sqlite"
    (tmp_path / "record.json").write_text(make_record().to_json())
    child = textwrap.dedent(
        f"""
        import os, signal
        from elephan.record import Record
        from elephan.store import Store
        record = Record.from_json(open({str(tmp_path / "record.json")!r}).read())
        store = Store({str(place)!r})
        for number in range(100):
            store.save(record.model_copy(update={{"id": f"{{number:016x}}"}}), None)
            if number == 6:
                os.kill(os.getpid(), signal.SIGKILL)
        """
    )
    subprocess.run([sys.executable, "-c", child], timeout=50, check=False)
    with Store(str(place)) as store:
        assert store.count() == 7


def test_series_are_not_copied_on_their_way_to_arrow() -> None:
    values = np.arange(1000, dtype=np.float64)
    series = Series.from_columns({"time_s": values}, {})
    assert series.flow.column("time_s").chunk(0).buffers()[1].address == values.ctypes.data


def test_a_series_has_one_digest_fresh_in_chunks_and_from_its_files(tmp_path: Path) -> None:
    row = np.arange(3000)
    columns = {
        "time_s": row / 7,
        "flow": row.astype(np.int32),
        "ssthresh_packets": np.where(row % 3 == 0, np.nan, 5.0),
        "srtt_s": np.where(row % 4 == 0, np.nan, 0.1),
        "is_up": row % 2 == 0,
    }
    for rows in (0, 1, 50, 3000):
        flow, link = {name: values[:rows] for name, values in columns.items()}, {"time_s": row[:rows] / 9}
        whole = Series.from_columns(flow, link)
        parts = [whole.flow.slice(0, 7), whole.flow.slice(7, 0), whole.flow.slice(7)]
        stored = Series.read(tmp_path, whole.write(tmp_path, f"ab/{rows}"))
        for one in (whole, Series(pa.concat_tables(parts), whole.link), stored):
            assert one.digest() == digest_of(flow, link)
            assert all(np.array_equal(values_of(one.flow, name), flow[name], equal_nan=True) for name in flow)


def test_files_that_cannot_be_synced_are_not_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    opened = len(os.listdir("/proc/self/fd"))
    monkeypatch.setattr(os, "fsync", full)
    contents = [(tmp_path / f"{number % 20}" / str(number), b"content") for number in range(300)]
    with Syncs() as syncs, pytest.raises(StoreError, match="No space left on device"):
        replace_together(contents, syncs)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    assert len(os.listdir("/proc/self/fd")) == opened
    monkeypatch.undo()
    with Syncs() as syncs:
        replace_together(contents, syncs)
    assert all(path.read_bytes() == content for path, content in contents)


def test_a_lost_series_file_says_so(store: Store, make_record: Make, make_series: MakeSeries, tmp_path: Path) -> None:
    record = make_record()
    store.save(record, make_series(count=5))
    for file in (tmp_path / "results.series").rglob("*.parquet"):
        file.unlink()
    with pytest.raises(StoreError, match="is missing; run it again with --again"):
        store.series(record.id)


def test_the_default_place_can_be_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ELEPHAN_STORE", str(tmp_path / "mine.sqlite"))
    open_store().close()
    assert (tmp_path / "mine.sqlite").is_file()
    monkeypatch.delenv("ELEPHAN_STORE")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    open_store().close()
    assert (tmp_path / "data" / "elephan" / "results.sqlite").is_file()
    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert default_location() == str(tmp_path / "home" / ".local" / "share" / "elephan" / "results.sqlite")
