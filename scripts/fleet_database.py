"""A PostgreSQL of one's own in a folder, and a pgbouncer in transaction mode before it.

Why: the demo of the fleet and the test of its dashboard need both, and must leave the machine's own alone.
Promise: behind Unix sockets in that folder, no port and no file elsewhere; gone with `stop`. The programs are Debian's,
or those that scripts/setup-postgresql.sh unpacked.
"""

import os
import shutil
import subprocess
import time
from pathlib import Path
from urllib.parse import quote

ROOT = Path(__file__).resolve().parent.parent
PLACE = ROOT / ".cache/tools/postgresql"
NOBODY = 65534
READY_S = 30
ROLES = {"node": "bursar_node", "operator": "bursar_operator", "reader": "bursar_reader"}
SERVER = """
listen_addresses = ''
unix_socket_directories = '{folder}'
fsync = off
max_connections = {connections}
shared_buffers = 64MB
"""
POOLER = """
[databases]
* = host={server}
[pgbouncer]
pool_mode = transaction
default_pool_size = 4
listen_addr =
listen_port = 6432
unix_socket_dir = {folder}
auth_type = trust
auth_file = {folder}/logins
"""


def programs():
    """Where the server's programs are; None: nowhere."""
    places = [*PLACE.glob("usr/lib/postgresql/*/bin"), *Path("/usr/lib/postgresql").glob("*/bin")]
    on_path = shutil.which("initdb")
    places += [Path(on_path).parent] if on_path else []
    places = [place for place in places if (place / "initdb").exists() and (place / "psql").exists()]
    return max(places, default=None, key=lambda place: (place.is_relative_to(PLACE), str(place)))


def pgbouncer():
    places = [PLACE / "usr/sbin/pgbouncer", Path("/usr/sbin/pgbouncer"), Path(shutil.which("pgbouncer") or "/nowhere")]
    return next((place for place in places if place.exists()), None)


def server_folder(parent, name):
    """A folder of the user that servers run as, which is not root."""
    folder = parent / name
    folder.mkdir(mode=0o755)
    if os.geteuid() == 0:
        os.chown(folder, NOBODY, NOBODY)
    return folder


def as_server(program, *arguments):
    """A command of that user, and its environment."""
    command = [program, *arguments]
    if os.geteuid() == 0:
        command = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *command]
    return list(map(str, command)), environment(program)


def environment(program):
    found = {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C"}
    if Path(program).is_relative_to(PLACE):
        found["LD_LIBRARY_PATH"] = str(PLACE / "libraries")
    return found


class Database:
    """A server with the database `fleet`, in which `schema` was run, and a login for each role of it."""

    def __init__(self, parent, schema, connections=100):
        parent.chmod(0o755)
        self.bin = programs()
        self.folder = server_folder(parent, "database")
        self._run("initdb", "-D", self.folder, "-U", "admin", "-A", "trust", "-E", "UTF8", "--no-sync")
        settings = SERVER.format(folder=self.folder, connections=connections)
        (self.folder / "postgresql.auto.conf").write_text(settings)
        self._run("pg_ctl", "-D", self.folder, "-l", self.folder / "log", "-w", "-t", READY_S, "start")
        self.sql("CREATE DATABASE fleet", "postgres")
        self.sql(schema)
        for name, role in ROLES.items():
            self.sql(f"CREATE ROLE {name} LOGIN IN ROLE {role}")

    def _run(self, program, *arguments):
        command, own = as_server(self.bin / program, *arguments)
        null = subprocess.DEVNULL
        subprocess.run(command, env=own, cwd=self.folder, stdin=null, stdout=null, stderr=null, check=True)

    def sql(self, statements, database="fleet", role="admin"):
        """What they answer, without decoration."""
        psql = self.bin / "psql"
        done = subprocess.run(
            [psql, "-XqAt", "-v", "ON_ERROR_STOP=1", "-U", role, "-d", database, "-h", self.folder],
            input=statements, env=environment(psql), cwd=self.folder, capture_output=True, text=True,
        )  # fmt: skip
        if done.returncode != 0:
            raise RuntimeError(f"{statements[:200]}: {done.stderr}")
        return done.stdout.strip()

    def url(self, role):
        return f"postgresql://{role}@{quote(str(self.folder), safe='')}/fleet"

    def stop(self):
        if (self.folder / "postmaster.pid").exists():
            self._run("pg_ctl", "-D", self.folder, "-m", "immediate", "stop")


class Pooler:
    """A pgbouncer before it."""

    def __init__(self, parent, database):
        self.database = database
        self.folder = server_folder(parent, "pooler")
        (self.folder / "logins").write_text("".join(f'"{name}" ""\n' for name in (*ROLES, "admin")))
        (self.folder / "ini").write_text(POOLER.format(server=database.folder, folder=self.folder))
        self.process = None
        self.start()

    def start(self):
        command, own = as_server(pgbouncer(), "-q", self.folder / "ini")
        null = subprocess.DEVNULL
        self.process = subprocess.Popen(command, env=own, cwd=self.folder, stdin=null, stdout=null, stderr=null)
        end = time.monotonic() + READY_S
        while not (self.folder / ".s.PGSQL.6432").exists():
            if self.process.poll() is not None or time.monotonic() > end:
                raise RuntimeError("pgbouncer did not start")
            time.sleep(0.02)

    def url(self, role):
        return f"postgresql://{role}@{quote(str(self.folder), safe='')}:6432/fleet"

    def stop(self):
        """At once, as when its machine is gone."""
        self.process.kill()
        self.process.wait()
        (self.folder / ".s.PGSQL.6432").unlink(missing_ok=True)
