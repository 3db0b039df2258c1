"""A PostgreSQL server of one's own, in a folder of one's own, for tests and benchmarks."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

PASSWORD = "p%ss:word/with@signs?"
_CODED = "p%25ss%3Aword%2Fwith%40signs%3F"


def programs() -> Path | None:
    """Return the folder of the server's programs, if there are any that may be run."""
    if not hasattr(os, "getuid"):
        return None
    if os.getuid() == 0:
        import pwd

        if not any(user.pw_name == "postgres" for user in pwd.getpwall()):
            return None
    found = shutil.which("initdb")
    folders = (
        [Path(found).resolve().parent]
        if found
        else sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    )
    return folders[-1] if folders else None


class Server:
    """A server that listens on a socket in its own folder; its user ``keeper`` may do all."""

    def __init__(self) -> None:
        folder = programs()
        assert folder is not None
        self._programs = folder
        # It refuses to be run by root.
        self._user: dict[str, Any] = {"user": "postgres"} if os.getuid() == 0 else {}
        self.folder = Path(tempfile.mkdtemp(prefix="skdp-pg-"))
        if self._user:
            shutil.chown(self.folder, "postgres")
        password = self.folder / "password"
        password.write_text(PASSWORD)
        password.chmod(0o644)
        self.data = self.folder / "data"
        arguments = ["-U", "keeper", "-A", "scram-sha-256", "--pwfile", password, "-E", "UTF8"]
        self._run("initdb", "-D", self.data, "--no-instructions", "--no-locale", *arguments)
        self.start()
        self.sql("CREATE DATABASE research", database="postgres")

    def start(self, *options: str) -> None:
        """Start it, also after it was killed, and wait until it answers."""
        fixed = ["-c", "listen_addresses=", "-c", f"unix_socket_directories={self.folder}"]
        while True:
            self._process = subprocess.Popen(
                [self._programs / "postgres", "-D", self.data, *fixed, *options],
                stderr=subprocess.DEVNULL,
                **self._user,
            )
            while self._process.poll() is None:
                ready = [self._programs / "pg_isready", "-q", "-h", self.folder]
                if subprocess.run(ready, check=False).returncode == 0:
                    return
                time.sleep(0.02)
            time.sleep(0.05)  # processes of the one that was killed are still there

    def kill(self, with_signal: int = signal.SIGKILL) -> None:
        """End it without a word to its clients (SIGKILL), or at once (SIGQUIT)."""
        self._process.send_signal(with_signal)
        self._process.wait()

    def remove(self) -> None:
        """End it and delete its folder."""
        self.kill(signal.SIGQUIT)
        shutil.rmtree(self.folder, ignore_errors=True)

    def address(self, schema: str, user: str = "keeper", password: str | None = _CODED) -> str:
        """Return the address of a ledger."""
        name = user if password is None else f"{user}:{password}"
        return f"postgresql://{name}@/research?host={self.folder}&schema={schema}"

    def sql(self, *statements: str, database: str = "research") -> list[Any]:
        """Carry out statements; return the rows of the last."""
        import psycopg

        rows: list[Any] = []
        with psycopg.connect(
            host=str(self.folder),
            user="keeper",
            password=PASSWORD,
            dbname=database,
            autocommit=True,
        ) as connection:
            for statement in statements:
                cursor = connection.execute(statement)
                rows = cursor.fetchall() if cursor.description else []
        return rows

    def _run(self, program: str, *arguments: object) -> None:
        command = [str(self._programs / program), *map(str, arguments)]
        subprocess.run(command, check=True, capture_output=True, cwd=self.folder, **self._user)
