"""Which code runs: the version of the package, and a digest of its files.

Two builds may call themselves by one version; their digests differ.
"""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.metadata import version
from pathlib import Path

UNKNOWN = "unknown"


@cache
def package_version() -> str:
    """Return the version that the package was installed as."""
    return version("skdp")


@cache
def code_digest() -> str:
    """Return 16 digits that follow from names and bytes of all modules; "unknown" without them."""
    return digest_of(Path(__file__).parent)


def digest_of(folder: Path) -> str:
    """Return the digest of the modules in a folder."""
    whole = hashlib.sha256()
    try:
        found = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*.py")}
        for name in sorted(found):
            content = found[name].read_bytes()
            whole.update(f"{name}\0{len(content)}\0".encode() + content)
    except OSError:
        return UNKNOWN
    return whole.hexdigest()[:16] if found else UNKNOWN


def who() -> dict[str, str]:
    """Return version and digest as records and ledgers hold them."""
    return {"skdp": package_version(), "code": code_digest()}
