"""Every setting and its default. From strongest to weakest: arguments, environment, the home's file.

Environment: ``HIGHWATER_`` and the name in capitals (``HIGHWATER_PORT=8502``; tables as JSON).
File: ``<home>/highwater.toml``, written by hand; a name it does not know is refused.
"""

from __future__ import annotations

import os
import sys
import tomllib
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import ByteSize, Field, SecretStr, field_validator
from pydantic_settings import (
    BaseSettings,
    InitSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from engine.model.user import Role
from engine.runtime.unready import Unready

PREFIX = "HIGHWATER_"
DEFAULT_HOME = Path("var")
SETTINGS_FILE = "highwater.toml"


class Settings(BaseSettings):
    """The settings of one home. Raises pydantic.ValidationError; Unready when the file is no TOML."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="forbid", frozen=True)

    home: Path = DEFAULT_HOME
    """The folder below which all state lies; absolute once read."""
    port: int = Field(default=8501, ge=1, le=65535)
    """The dashboard's."""
    address: str = "127.0.0.1"
    """The dashboard's interface; another one than the loopback needs a login (`engine.runtime.login`)."""
    dashboard_role: Role = Role.ADMIN
    """What may be done in a dashboard without a login, which whoever works on this machine can open."""
    metrics_port: int | None = Field(default=None, ge=1, le=65535)
    """Where the agent serves ``/metrics`` for Prometheus; None: nowhere."""
    metrics_address: str = "127.0.0.1"
    """The interface of that port. Whoever reaches it may read: names of databases and tables are in it."""
    traces_endpoint: str | None = Field(default=None, pattern=r"^https?://[^/]+/")
    """OTLP/HTTP URL for traces of scans, ``http://localhost:4318/v1/traces``; None: no traces."""
    master: str = "local[*]"
    """Spark's master: this machine's cores, or a cluster."""
    driver_memory: str = Field(default="2g", pattern=r"^\d+[kmgt]b?$")
    """The agent's Java heap."""
    spark_settings: dict[str, str] = {}
    """More settings of the Spark session; they win over ours."""
    jars: Path = Path(sys.prefix, "share", "highwater", "jars")
    """Delta's jars, put there by ``make setup``."""
    lake_root: str | None = None
    """Folder or Hadoop URI of the Delta tables; None: ``<home>/lake``."""
    control_dsn: SecretStr | None = None
    """libpq URI of the control database; None: ``msdb`` in the embedded server."""
    piece_bytes: ByteSize = ByteSize(64 * 1024 * 1024)
    """How much of the log is in memory at once."""
    lease_seconds: int = Field(default=10, ge=2)
    """How long a capture process that fell silent keeps the log to itself."""
    idle_tick_seconds: int = Field(default=300, ge=1)
    """After so long without changes, a dummy row in lsn_time_mapping keeps max_lsn moving."""
    scan_interval_floor: float = Field(default=0.1, ge=0)
    """Seconds at least between two scans when pollinginterval is 0: commits of that time share one append."""
    vacuum_after_hours: int = Field(default=24, ge=1, le=168)
    """Files of the lake that no version of so many last hours refers to are deleted: longer than any query
    or reader of a version takes, and no more than a week, which is as long as Delta remembers them."""
    activity_days: int = Field(default=365, ge=0)
    """How long the record of who did what is kept; 0: for ever."""
    schedule_zone: str = "UTC"
    """Whose hours the schedules of cleanup jobs mean: a name of the time zone database."""
    postgres_settings: dict[str, str] = {}
    """More settings of the embedded server; they win over ours."""
    minimum_free_bytes: ByteSize = ByteSize(512 * 1024 * 1024)
    """With less free disk space than this, nothing is started."""

    @field_validator("home", "jars")
    @classmethod
    def _absolute(cls, folder: Path) -> Path:
        return folder.expanduser().absolute()

    @field_validator("home")
    @classmethod
    def _resolved(cls, home: Path) -> Path:
        """One home, one spelling: processes find each other by it."""
        return home.resolve()

    @field_validator("schedule_zone")
    @classmethod
    def _known(cls, name: str) -> str:
        try:
            ZoneInfo(name)
        except (ZoneInfoNotFoundError, ValueError, OSError) as error:
            raise ValueError(f"'{name}' is no time zone; write it like Europe/Berlin") from error
        return name

    @property
    def zone(self) -> ZoneInfo:
        """The zone of `schedule_zone`."""
        return ZoneInfo(self.schedule_zone)

    @property
    def lake(self) -> str:
        """The root of the lake that is meant."""
        return self.lake_root or str(self.home / "lake")

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Arguments, environment, then the file of the home that these two name."""
        assert isinstance(init_settings, InitSettingsSource)
        given = init_settings.init_kwargs.get("home") or os.environ.get(f"{PREFIX}HOME") or DEFAULT_HOME
        file = Path(str(given)).expanduser() / SETTINGS_FILE
        try:
            written = TomlConfigSettingsSource(settings_cls, toml_file=file)
        except (tomllib.TOMLDecodeError, OSError) as error:
            raise Unready(
                f"{file} cannot be read as TOML: {error}", "Mend the file, or remove it."
            ) from error
        return init_settings, env_settings, written
