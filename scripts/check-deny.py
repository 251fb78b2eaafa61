#!/usr/bin/env python3
"""Shows that deny.toml bites: throw-away copies of the workspace, each with one thing in it that is forbidden.

Why: a ban that is misspelt, or that a later cargo-deny reads otherwise, forbids nothing and says nothing.
Promise: every wall, ban, licence rule and source rule of deny.toml is broken once and reported by its own
name; an untouched copy passes. No network, and nothing in the caller's cargo home changes.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
RULES = ROOT / "deny.toml"
PARTS = ["Cargo.toml", "Cargo.lock", "src", "sandbox", "benches", "tests"]


def crate(folder, name, more="", licence='license = "MIT"', publish=""):
    """A crate of nothing."""
    (folder / "src").mkdir(parents=True)
    (folder / "src/lib.rs").write_text("")
    (folder / "Cargo.toml").write_text(f'[package]\nname = "{name}"\nversion = "0.1.0"\nedition = "2024"\n{licence}\n{publish}\n{more}')


def depend(manifest, line):
    text = manifest.read_text()
    manifest.write_text(text.replace("[dependencies]\n", f"[dependencies]\n{line}\n", 1))


def deny(folder, checks, *more, locked=False, env=None, rules=RULES):
    """What cargo-deny says: its exit code, and the codes and words of its errors."""
    command = ["cargo", "deny", "--format", "json", "--config", rules, "--workspace"]
    command += [*(["--locked"] if locked else []), *more, "check", *checks]
    told = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=env)
    errors = []
    for line in told.stderr.splitlines():
        try:
            fields = json.loads(line)["fields"]
        except (ValueError, KeyError):
            continue
        if fields.get("severity") == "error":
            errors.append((fields.get("code"), json.dumps(fields)))
    return told.returncode, errors, told.stderr


def bites(what, folder, checks, code, word, *more, **how):
    ended, errors, said = deny(folder, checks, *more, **how)
    hit = [text for found, text in errors if found == code and word in text]
    if ended == 0 or not hit:
        raise SystemExit(f"FAILED: {what} passes, or is refused for another reason ({ended})\n{said}")
    print(f"    {what}: {code}", flush=True)


def workspace(tmp, name):
    copy = tmp / re.sub(r"\W+", "-", name)
    copy.mkdir()
    for part in PARTS:
        source = ROOT / part
        if source.is_dir():
            shutil.copytree(source, copy / part, ignore=shutil.ignore_patterns("node_modules", "target"))
        else:
            shutil.copy(source, copy / part)
    return copy


def extra(copy, line):
    """One more member of the workspace, which has this dependency."""
    crate(copy / "extra", "extra", f"[dependencies]\n{line}\n", publish="publish = false")
    manifest = copy / "Cargo.toml"
    manifest.write_text(manifest.read_text().replace('members = [".", ', 'members = [".", "extra", ', 1))


def walls(tmp, rules):
    """Each wall is broken by a package that it does not name, each ban by a crate of that name."""
    for ban in rules["bans"]["deny"]:
        name = ban["crate"]
        copy = workspace(tmp, f"ban {name}")
        own = {"bursar-sandbox": "../sandbox", "bursar-models": "../sandbox/models"}
        if name in own:
            extra(copy, f'{name} = {{ path = "{own[name]}" }}')
        elif "wrappers" in ban:
            manifest = tomllib.loads((copy / "Cargo.toml").read_text())
            sandbox = tomllib.loads((copy / "sandbox/Cargo.toml").read_text())
            shared = manifest["workspace"]["dependencies"]
            used = next(found[name] for found in (manifest["dependencies"], shared, sandbox["dependencies"]) if name in found)
            version = used if isinstance(used, str) else used["version"]
            other = "sandbox/Cargo.toml" if "bursar" in ban["wrappers"] else "Cargo.toml"
            depend(copy / other, f'{name} = {{ version = "{version}", default-features = false }}')
        else:
            crate(copy / "twin", name, publish="publish = false")
            depend(copy / "sandbox/Cargo.toml", f'{name} = {{ path = "../twin" }}')
        # A wall that is broken shows as a ban, or as a package that is none of its wrappers.
        ended, errors, said = deny(copy, ["bans"], "--offline")
        hit = [found for found, text in errors if found in ("banned", "unmatched-wrapper") and name in text]
        if ended == 0 or not hit:
            raise SystemExit(f"FAILED: {name} in another place passes\n{said}")
        print(f"    {name} where it does not belong: {hit[0]}", flush=True)


def licences(tmp):
    for what, licence, code in (
        ("a copyleft licence", 'license = "GPL-3.0-only"', "rejected"),
        ("a copyleft licence per file", 'license = "MPL-2.0"', "rejected"),
        ("no licence", "", "unlicensed"),
    ):
        copy = workspace(tmp, what)
        crate(copy / "found", "found", licence=licence)
        depend(copy / "sandbox/Cargo.toml", 'found = { path = "../found", version = "0.1.0" }')
        bites(what, copy, ["licenses"], code, "found", "--offline")


def others(tmp):
    copy = workspace(tmp, "wildcard")
    depend(copy / "sandbox/Cargo.toml", 'crc32c = "*"')
    bites("a dependency on any version", copy, ["bans"], "wildcard", "wildcard dependency", "--offline")

    # One of those that were looked at, as if it had not been.
    copy = workspace(tmp, "build script")
    rules = tmp / "rules.toml"
    rules.write_text(RULES.read_text().replace('"ring",', "", 1))
    bites("a build script that nobody looked at", copy, ["bans"], "build-script-not-allowed", "ring", "--offline", rules=rules)

    copy = workspace(tmp, "lock file")
    depend(copy / "sandbox/Cargo.toml", 'crc32c = "0.6"')
    ended, _, said = deny(copy, ["bans"], "--offline", locked=True)
    if ended == 0 or "lock" not in said:
        raise SystemExit(f"FAILED: a lock file that does not fit passes\n{said}")
    print("    a lock file that does not fit its manifests: refused", flush=True)


def git(folder, *arguments):
    who = ["-c", "user.name=x", "-c", "user.email=x@localhost", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True)


def sources(tmp):
    """A crate from a repository. Its own cargo home, so that nothing of it stays."""
    away = tmp / "away"
    crate(away, "away")
    git(away, "init")
    git(away, "add", ".")
    git(away, "commit", "-m", "x")
    user = tmp / "user"
    crate(user, "user", f'[dependencies]\naway = {{ git = "file://{away}" }}\n', publish="publish = false")
    env = {**os.environ, "CARGO_HOME": str(tmp / "cargo-home")}
    bites("a crate from git", user, ["sources"], "source-not-allowed", "away", env=env)


def registry(tmp):
    """A crate from another index. Cargo's own account of an untouched copy, with one source changed."""
    copy = workspace(tmp, "registry")
    command = ["cargo", "metadata", "--locked", "--offline", "--format-version", "1"]
    told = subprocess.run(command, cwd=copy, check=True, capture_output=True, text=True).stdout
    found = next(package for package in json.loads(told)["packages"] if package["name"] == "strsim")
    other = "registry+https://registry.example/index"
    new = found | {"source": other, "id": found["id"].replace(found["source"], other)}
    told = json.loads(told.replace(json.dumps(found["id"]), json.dumps(new["id"])))
    for package in told["packages"]:
        if package["name"] == "strsim":
            package["source"] = other
    (tmp / "metadata.json").write_text(json.dumps(told))
    bites("a crate from another index", copy, ["sources"], "source-not-allowed", "strsim", "--metadata-path", tmp / "metadata.json")


def main():
    rules = tomllib.loads(RULES.read_text())
    with tempfile.TemporaryDirectory() as folder:
        tmp = pathlib.Path(folder)
        ended, errors, said = deny(workspace(tmp, "untouched"), ["licenses", "bans", "sources"], "--offline", locked=True)
        if ended or errors:
            raise SystemExit(f"FAILED: an untouched copy does not pass\n{said}")
        print("==> deny.toml bites", flush=True)
        walls(tmp, rules)
        licences(tmp)
        others(tmp)
        sources(tmp)
        registry(tmp)


if __name__ == "__main__":
    main()
