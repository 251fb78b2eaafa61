#!/usr/bin/env python3
"""Runs a program under what systemd/bursar.service asks for and what can be had without PID 1.

Why: a system call that bursar needs and the unit forbids would show on a user's machine only.
Promise: the system calls, address families, limits and switches are read from the unit; what systemd would
refuse is refused here, with the same error. Nothing outside the state directory and /tmp can be written.

It needs python3, libseccomp and systemd-analyze (it knows the groups of system calls), and root or user
namespaces. Inside: the program is /run/cage/program, the state directory /run/cage/state, and each --bind is
below /run/cage by its own name. An unprivileged user runs it. Not root: that user is the caller.
"""

import argparse
import ctypes
import ctypes.util
import errno
import functools
import os
import pathlib
import resource
import subprocess
import sys

libc = ctypes.CDLL(None, use_errno=True)

CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC, CLONE_NEWUSER = 0x20000, 0x4000000, 0x8000000, 0x10000000
NAMESPACES = (CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC, CLONE_NEWUSER, 0x80, 0x02000000, 0x20000000, 0x40000000)
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_BIND, MS_REC, MS_PRIVATE = 1, 2, 4, 8, 0x1000, 0x4000, 1 << 18
SYS_MOUNT_SETATTR, AT_FDCWD, AT_RECURSIVE, MOUNT_ATTR_RDONLY = 442, -100, 0x8000, 1
PR_SET_NO_NEW_PRIVS, PR_CAPBSET_DROP, PR_SET_MDWE, PR_CAP_AMBIENT = 38, 24, 65, 47
ALLOW, ERRNO = 0x7FFF0000, 0x00050000
NE, EQ, MASKED_EQ = 1, 4, 7
PROT_WRITE, PROT_EXEC, SHM_EXEC = 2, 4, 0o100000
FAMILIES = 46  # AF_MAX
NOBODY = 65534


class Cannot(Exception):
    """This machine cannot make the cage; exit code 77, as test runners count skipped tests."""


def must(answer, what):
    if answer < 0:
        raise Cannot(f"{what}: {os.strerror(ctypes.get_errno())}")


# === the unit ===


def directives(path):
    """Each directive's values, in their order."""
    found = {}
    for line in pathlib.Path(path).read_text().splitlines():
        name, equals, value = line.partition("=")
        if equals and not line.startswith(("#", "[")):
            found.setdefault(name.strip(), []).append(value.strip())
    return found


@functools.cache
def groups():
    """Each group of system calls, with its members, which may be groups."""
    told = subprocess.run(["systemd-analyze", "syscall-filter", "--no-pager"], capture_output=True, text=True, check=True)
    found, members = {}, []
    for line in told.stdout.splitlines():
        word = line.strip()
        if line.startswith("@"):
            members = found.setdefault(word, [])
        elif line.startswith(" ") and not word.startswith("#"):
            members.append(word)
    return found


def calls_of(word):
    """The system calls that a word of SystemCallFilter= stands for."""
    if not word.startswith("@"):
        return {word}
    return set().union(*(calls_of(member) for member in groups()[word]))


def allowed_calls(unit):
    """What SystemCallFilter= leaves: the first line allows, a line with a tilde takes away."""
    allowed = calls_of("@default")
    for line in unit["SystemCallFilter"]:
        takes_away = line.startswith("~")
        for word in line.lstrip("~").split():
            calls = calls_of(word)
            allowed = allowed - calls if takes_away else allowed | calls
    return allowed


# === system calls ===


class Compare(ctypes.Structure):
    _fields_ = [("arg", ctypes.c_uint), ("op", ctypes.c_int), ("a", ctypes.c_uint64), ("b", ctypes.c_uint64)]


class Filter:
    """One libseccomp filter. Several are in force at once, and the strictest answer counts."""

    def __init__(self, default):
        try:
            self.lib = ctypes.CDLL("libseccomp.so.2", use_errno=True)
        except OSError as error:
            raise Cannot(f"libseccomp: {error}") from error
        self.lib.seccomp_init.restype = ctypes.c_void_p
        self.lib.seccomp_init.argtypes = [ctypes.c_uint32]
        self.lib.seccomp_rule_add_array.argtypes = [
            ctypes.c_void_p, ctypes.c_uint32, ctypes.c_int, ctypes.c_uint, ctypes.POINTER(Compare)]
        self.lib.seccomp_load.argtypes = [ctypes.c_void_p]
        self.context = self.lib.seccomp_init(default)

    def rule(self, action, name, *compares):
        number = self.lib.seccomp_syscall_resolve_name(name.encode())
        if number < 0:  # not a call of this machine
            return
        array = (Compare * max(1, len(compares)))(*compares)
        added = self.lib.seccomp_rule_add_array(self.context, action, number, len(compares), array)
        if added not in (0, -errno.EEXIST):
            raise Cannot(f"seccomp rule for {name}: {os.strerror(-added)}")

    def load(self):
        loaded = self.lib.seccomp_load(self.context)
        if loaded:
            raise Cannot(f"seccomp filter: {os.strerror(-loaded)}")


def switches(unit):
    """The directives that systemd turns into filters of arguments."""
    is_on = lambda name: unit.get(name, ["no"])[-1] == "yes"
    eperm = ERRNO | errno.EPERM
    made = Filter(ALLOW)
    families = unit["RestrictAddressFamilies"][-1].split()
    known = {int(getattr(__import__("socket"), name)) for name in families}
    for family in range(FAMILIES):
        if family not in known:
            made.rule(ERRNO | errno.EAFNOSUPPORT, "socket", Compare(0, EQ, family, 0))
    if is_on("MemoryDenyWriteExecute"):
        both = PROT_WRITE | PROT_EXEC
        made.rule(eperm, "mmap", Compare(2, MASKED_EQ, both, both))
        for name in ("mprotect", "pkey_mprotect"):
            made.rule(eperm, name, Compare(2, MASKED_EQ, PROT_EXEC, PROT_EXEC))
        made.rule(eperm, "shmat", Compare(2, MASKED_EQ, SHM_EXEC, SHM_EXEC))
    if is_on("RestrictNamespaces"):
        for flag in NAMESPACES:
            for name in ("unshare", "clone"):
                made.rule(eperm, name, Compare(0, MASKED_EQ, flag, flag))
        made.rule(eperm, "setns")
        # Its flags lie in memory, where a filter cannot look: the caller falls back to clone.
        made.rule(ERRNO | errno.ENOSYS, "clone3")
    if is_on("RestrictRealtime"):
        for policy in (1, 2, 6):  # FIFO, RR, DEADLINE
            made.rule(eperm, "sched_setscheduler", Compare(1, EQ, policy, 0))
    if is_on("RestrictSUIDSGID"):
        for bit in (0o4000, 0o2000):
            for name, arg in (("chmod", 1), ("fchmod", 1), ("fchmodat", 2), ("mkdir", 1), ("mkdirat", 2)):
                made.rule(eperm, name, Compare(arg, MASKED_EQ, bit, bit))
    if is_on("LockPersonality"):
        made.rule(eperm, "personality", Compare(0, NE, 0, 0))
    return made


def filter_of(unit, without):
    number = getattr(errno, unit["SystemCallErrorNumber"][-1])
    made = Filter(ERRNO | number)
    for name in sorted(allowed_calls(unit) - set(without)):
        made.rule(ALLOW, name)
    return made


# === what it sees ===


def mount(source, target, kind, flags, options=None):
    encoded = [None if word is None else str(word).encode() for word in (source, target, kind, options)]
    must(libc.mount(encoded[0], encoded[1], encoded[2], ctypes.c_ulong(flags), encoded[3]), f"mount on {target}")


def read_only(path, is_read_only, flags=0):
    attributes = (ctypes.c_uint64 * 4)(MOUNT_ATTR_RDONLY * is_read_only, MOUNT_ATTR_RDONLY * (not is_read_only), 0, 0)
    answer = libc.syscall(SYS_MOUNT_SETATTR, AT_FDCWD, str(path).encode(), flags, attributes, ctypes.sizeof(attributes))
    must(answer, f"rights of {path}")


def bind(source, target, writable=False):
    target = pathlib.Path(target)
    if os.path.isdir(source):
        target.mkdir(parents=True)
    else:
        target.touch()
    mount(source, target, None, MS_BIND)
    read_only(target, not writable)


def enclose(unit, program, state, binds, is_root):
    """A file system of its own: all of it for reading, /tmp private, homes and devices gone."""
    if not is_root:
        user, group = os.getuid(), os.getgid()
        must(libc.unshare(CLONE_NEWUSER), "a user namespace")
        pathlib.Path("/proc/self/setgroups").write_text("deny")
        pathlib.Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        pathlib.Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    must(libc.unshare(CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC), "namespaces")
    mount(None, "/", None, MS_REC | MS_PRIVATE)
    if unit["ProtectSystem"][-1] != "strict":
        raise SystemExit("the unit's ProtectSystem= is not strict any more")
    read_only("/", True, AT_RECURSIVE)
    safe = MS_NOSUID | MS_NODEV
    mount("tmpfs", "/run", "tmpfs", safe, "mode=0755")
    cage = pathlib.Path("/run/cage")
    cage.mkdir()
    bind(program, cage / "program")
    bind(state, cage / "state", writable=True)
    for source in binds:
        bind(source, cage / pathlib.Path(source).name)
    if unit["PrivateDevices"][-1] == "yes":
        devices = pathlib.Path("/run/devices")
        devices.mkdir()
        for name in ("null", "zero", "full", "random", "urandom"):
            bind(f"/dev/{name}", devices / name)
        mount(devices, "/dev", None, MS_BIND | MS_REC)
    if unit["ProtectHome"][-1] == "yes":
        for home in ("/home", "/root"):
            if os.path.isdir(home):
                mount("tmpfs", home, "tmpfs", safe | MS_RDONLY, "mode=0000")
    if is_root:  # a user namespace may mount no view of processes that are not its own
        hidden = {"invisible": "hidepid=invisible"}[unit["ProtectProc"][-1]]
        mount("proc", "/proc", "proc", safe | MS_NOEXEC | MS_RDONLY, hidden)
    if unit["PrivateTmp"][-1] == "yes":
        for folder in ("/tmp", "/var/tmp"):
            mount("tmpfs", folder, "tmpfs", safe, "mode=1777")
    read_only("/run", True)
    os.chdir("/")


# === its user ===


def give_up_rights(unit, is_root):
    os.umask(int(unit["UMask"][-1], 8))
    for limit, name in ((resource.RLIMIT_CORE, "LimitCORE"), (resource.RLIMIT_NOFILE, "LimitNOFILE")):
        most = int(unit[name][-1])
        resource.setrlimit(limit, (most, most))
    if unit["CapabilityBoundingSet"] != [""] or unit["AmbientCapabilities"] != [""]:
        raise SystemExit("the unit keeps capabilities")
    libc.prctl(PR_CAP_AMBIENT, 4, 0, 0, 0)
    for capability in range(64):
        libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
    if is_root:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
    if unit["NoNewPrivileges"][-1] == "yes":
        must(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
    if unit["MemoryDenyWriteExecute"][-1] == "yes":
        libc.prctl(PR_SET_MDWE, 1, 0, 0, 0)  # kernels before 6.3 have the filter alone


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--unit", default="systemd/bursar.service")
    parser.add_argument("--program", required=True, help="becomes /run/cage/program")
    parser.add_argument("--state", required=True, help="the one directory that can be written")
    parser.add_argument("--bind", action="append", default=[], help="a file or folder to read, below /run/cage")
    parser.add_argument("--without", action="append", default=[], help="a system call that is taken away")
    parser.add_argument("--give", type=int, action="append", default=[], help="a listening descriptor to hand over")
    parser.add_argument("command", nargs="+")
    asked = parser.parse_args()
    unit = directives(asked.unit)
    is_root = os.geteuid() == 0
    # The descriptors may stand where others are to go.
    given = [os.dup(descriptor) for descriptor in asked.give]
    try:
        first, last = switches(unit), filter_of(unit, asked.without)
        if is_root:
            os.chown(asked.state, NOBODY, NOBODY)
        enclose(unit, asked.program, asked.state, asked.bind, is_root)
        give_up_rights(unit, is_root)
        environment = dict(os.environ)
        for name in unit.get("UnsetEnvironment", [""])[-1].split():
            environment.pop(name, None)
        for place, descriptor in enumerate(given, 3):
            os.dup2(descriptor, place, inheritable=True)
        if given:
            environment |= {"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": str(len(given)), "LISTEN_FDNAMES": ":".join(["proxy"] * len(given))}
        first.load()
        last.load()
    except Cannot as why:
        print(f"the cage cannot be made: {why}", file=sys.stderr)
        raise SystemExit(77) from why
    os.execve(asked.command[0], asked.command, environment)


if __name__ == "__main__":
    main()
