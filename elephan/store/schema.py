"""Tables of the store. A change here needs a migration in `migrations/versions`; a test compares the two."""

from __future__ import annotations

from sqlalchemy import Float, ForeignKey, Index, Integer, String, Text
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
