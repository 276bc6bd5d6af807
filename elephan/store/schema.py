"""Tables of the store. A change here needs a migration in `migrations/versions`; a test compares the two."""

from __future__ import annotations

from sqlalchemy import BigInteger, Float, ForeignKey, Index, Integer, String, Text
from sqlalchemy.dialects.mysql import LONGTEXT
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

# MySQL's and MariaDB's TEXT ends at 64 KiB; a record with a long loss list is larger.
LongText = Text().with_variant(LONGTEXT(), "mysql", "mariadb")

# So that an index over a name fits MySQL's 3072 bytes with 4 bytes per character.
NAME = 255

# The server's own may be Latin-1, and take "A" and "a" for one name.
TEXT_OPTIONS = {
    f"{server}_{option}": value
    for server in ("mysql", "mariadb")
    for option, value in (("charset", "utf8mb4"), ("collate", "utf8mb4_bin"))
}


class Base(DeclarativeBase):
    """All tables."""


class RunRow(Base):
    """A run: columns to search by, the whole record as JSON."""

    __tablename__ = "run"
    __table_args__ = (TEXT_OPTIONS,)

    id: Mapped[str] = mapped_column(String(64), primary_key=True)
    format: Mapped[int] = mapped_column(Integer)
    created: Mapped[str] = mapped_column(String(32), index=True)
    scenario: Mapped[str] = mapped_column(String(NAME), index=True)
    backend: Mapped[str] = mapped_column(String(16))
    version: Mapped[str] = mapped_column(String(64))
    build: Mapped[str] = mapped_column(String(64))
    """Digest of the core that ran it; see `elephan.core.build_digest`."""
    # Text: a seed takes all 64 bits, and no SQL integer does without a sign.
    seed: Mapped[str] = mapped_column(String(20))
    record: Mapped[str] = mapped_column(LongText)
    flow_series: Mapped[str | None] = mapped_column(String(NAME))
    link_series: Mapped[str | None] = mapped_column(String(NAME))
    sha256: Mapped[str | None] = mapped_column(String(64))
    """Of `record` in UTF-8; none in rows that elephan 0.1.0 wrote."""


class MetricRow(Base):
    """One metric of a run, for SQL of one's own: `select avg(value) from metric where name = 'lag_p99_s'`."""

    __tablename__ = "metric"
    __table_args__ = (Index("metric_name_value", "name", "value"), TEXT_OPTIONS)

    run_id: Mapped[str] = mapped_column(ForeignKey("run.id", ondelete="CASCADE"), primary_key=True)
    name: Mapped[str] = mapped_column(String(NAME), primary_key=True)
    # 53 binary digits: double precision everywhere (MySQL's FLOAT alone is single).
    value: Mapped[float | None] = mapped_column(Float(53))


class ParameterRow(Base):
    """One parameter of a run; its value as text, as the scenario writes it."""

    __tablename__ = "parameter"
    __table_args__ = (Index("parameter_name", "name"), TEXT_OPTIONS)

    run_id: Mapped[str] = mapped_column(ForeignKey("run.id", ondelete="CASCADE"), primary_key=True)
    name: Mapped[str] = mapped_column(String(NAME), primary_key=True)
    value: Mapped[str] = mapped_column(LongText)


class MonitorPathRow(Base):
    """A path that a monitor watches. Its id is made of the names (`elephan.monitor.tables.path_id`)."""

    __tablename__ = "monitor_path"
    __table_args__ = (TEXT_OPTIONS,)

    id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    monitor: Mapped[str] = mapped_column(String(NAME))
    name: Mapped[str] = mapped_column(String(NAME))
    settings: Mapped[str] = mapped_column(LongText)
    """The path's table of the monitor's file, as JSON."""
    created: Mapped[str] = mapped_column(String(32))
    state: Mapped[str] = mapped_column(String(16))
    """`running`, or `paused` when its monitor has ended in order."""
    changed: Mapped[int] = mapped_column(BigInteger)
    """Time of the newest row of this path in any table, Unix ns."""


def _path_key(primary_key: bool = False) -> Mapped[int]:
    return mapped_column(BigInteger, ForeignKey("monitor_path.id", ondelete="CASCADE"), primary_key=primary_key)


class MonitorSummaryRow(Base):
    """Samples of a minute, an hour or a day. `count` are those that arrived; values are in the quantity's unit."""

    __tablename__ = "monitor_summary"
    __table_args__ = ({**TEXT_OPTIONS, "sqlite_with_rowid": False},)

    path_id: Mapped[int] = _path_key(primary_key=True)
    quantity: Mapped[str] = mapped_column(String(64), primary_key=True)
    seconds: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    start: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    count: Mapped[int] = mapped_column(Integer)
    lost: Mapped[int] = mapped_column(Integer)
    min: Mapped[float | None] = mapped_column(Float(53))
    p05: Mapped[float | None] = mapped_column(Float(53))
    p50: Mapped[float | None] = mapped_column(Float(53))
    p95: Mapped[float | None] = mapped_column(Float(53))
    max: Mapped[float | None] = mapped_column(Float(53))
    mean: Mapped[float | None] = mapped_column(Float(53))


class MonitorOutcomeRow(Base):
    """The outcome of a path test, as JSON."""

    __tablename__ = "monitor_outcome"
    __table_args__ = (Index("monitor_outcome_path", "path_id", "test", "at"), TEXT_OPTIONS)

    id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    path_id: Mapped[int] = _path_key()
    test: Mapped[str] = mapped_column(String(32))
    at: Mapped[float] = mapped_column(Float(53))
    outcome: Mapped[str] = mapped_column(LongText)


class MonitorAlertRow(Base):
    """A change of a path that somebody was told of; `ended` is null while it lasts. Times are Unix s."""

    __tablename__ = "monitor_alert"
    __table_args__ = (Index("monitor_alert_path", "path_id", "found"), TEXT_OPTIONS)

    id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    path_id: Mapped[int] = _path_key()
    quantity: Mapped[str] = mapped_column(String(64))
    kind: Mapped[str] = mapped_column(String(32))
    since: Mapped[float] = mapped_column(Float(53))
    found: Mapped[float] = mapped_column(Float(53))
    ended: Mapped[float | None] = mapped_column(Float(53))
    text: Mapped[str] = mapped_column(LongText)
    evidence: Mapped[str] = mapped_column(LongText)
    cause: Mapped[str | None] = mapped_column(String(NAME))
    forecast: Mapped[str] = mapped_column(LongText)


class BackupJobRow(Base):
    """A job of a backup. Its id is made of the names (`elephan.backup.tables.job_id`). Times are Unix s."""

    __tablename__ = "backup_job"
    __table_args__ = (TEXT_OPTIONS,)

    id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    backup: Mapped[str] = mapped_column(String(NAME))
    name: Mapped[str] = mapped_column(String(NAME))
    settings: Mapped[str] = mapped_column(LongText)
    """The job's table of the backup's file, as JSON."""
    created: Mapped[float] = mapped_column(Float(53))
    state: Mapped[str] = mapped_column(String(16))
    """`active`, or `ended` when the program that runs it has ended in order."""
    next_due: Mapped[float | None] = mapped_column(Float(53))
    """Time at which it is due; null: never by itself."""
    forecast: Mapped[str | None] = mapped_column(LongText)
    """RPO, RTO and what they rest on, as JSON."""
    changed: Mapped[int] = mapped_column(BigInteger)
    """Time of the newest change of this job or a row of it, Unix ns."""


class BackupRunRow(Base):
    """A run of a job: a copy, in one attempt or more. Times are Unix s."""

    __tablename__ = "backup_run"
    __table_args__ = (Index("backup_run_order", "job_id", "sequence"), TEXT_OPTIONS)

    id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    job_id: Mapped[int] = mapped_column(BigInteger, ForeignKey("backup_job.id", ondelete="CASCADE"))
    kind: Mapped[str] = mapped_column(String(16))
    """`full`, `incremental`, `mirror` or `restore`."""
    version: Mapped[str | None] = mapped_column(String(64))
    """Name of its folder at the destination; null for a mirror."""
    due: Mapped[float | None] = mapped_column(Float(53))
    """Null: somebody asked for it."""
    missed: Mapped[int] = mapped_column(Integer)
    """Due times before `due` that this run makes up for."""
    sequence: Mapped[int] = mapped_column(BigInteger, server_default="0")
    """Order of a job's runs: the Unix ns of its beginning, or more than that of the run before if the clock was set
    back."""
    begun: Mapped[float] = mapped_column(Float(53))
    """By the clock of then: for display, and for the age of data."""
    ended: Mapped[float | None] = mapped_column(Float(53))
    """Null: it goes on."""
    state: Mapped[str] = mapped_column(String(16))
    """`running`, `waiting`, `interrupted`, `done`, `attributes`, `faults` or `failed`."""
    attempts: Mapped[int] = mapped_column(Integer)
    files: Mapped[int | None] = mapped_column(BigInteger)
    bytes: Mapped[int | None] = mapped_column(BigInteger)
    """Of the sources."""
    sent_bytes: Mapped[int | None] = mapped_column(BigInteger)
    """File data that went over the path, in all attempts."""
    seconds: Mapped[float | None] = mapped_column(Float(53))
    """Time of its attempts, each from when both ends had met."""
    removed: Mapped[float | None] = mapped_column(Float(53))
    """Time at which its version was removed."""
    text: Mapped[str | None] = mapped_column(LongText)
    """Reason of its state, in a line."""
    progress: Mapped[str | None] = mapped_column(LongText)
    """The newest event `progress` of its copy, as JSON."""
    receipt: Mapped[str | None] = mapped_column(LongText)
    forecast: Mapped[str | None] = mapped_column(LongText)
    """Its forecast before the first byte, and how that compares, as JSON."""
    changed: Mapped[int] = mapped_column(BigInteger)


class BackupAttemptRow(Base):
    """An attempt of a run."""

    __tablename__ = "backup_attempt"
    __table_args__ = (Index("backup_attempt_run", "run_id", "number"), TEXT_OPTIONS)

    id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    run_id: Mapped[int] = mapped_column(BigInteger, ForeignKey("backup_run.id", ondelete="CASCADE"))
    number: Mapped[int] = mapped_column(Integer)
    begun: Mapped[float] = mapped_column(Float(53))
    ended: Mapped[float | None] = mapped_column(Float(53))
    outcome: Mapped[str] = mapped_column(String(16))
    """`running`, `done`, `lost`, `window` (its hours were over) or `stopped`."""
    sent_bytes: Mapped[int | None] = mapped_column(BigInteger)
    text: Mapped[str | None] = mapped_column(LongText)
