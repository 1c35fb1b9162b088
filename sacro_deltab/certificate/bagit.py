"""BagIt 1.0 (RFC 8493) with sha-512 manifests, written as one zip.

Own code because the package `bagit` on PyPI writes "BagIt-Version: 0.97", which the Five Safes profile forbids.
"""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Mapping
from pathlib import Path

SOFTWARE = "sacro_deltab"
_EPOCH = (1980, 1, 1, 0, 0, 0)  # no times of files leave with the zip


def manifest(files: Mapping[str, bytes]) -> bytes:
    """`digest  path` lines, sorted; %, CR and LF in a path are percent-encoded (RFC 8493, 2.1.3)."""
    lines = [f"{hashlib.sha512(files[name]).hexdigest()}  {_encoded(name)}\n" for name in sorted(files)]
    return "".join(lines).encode("utf-8")


def _encoded(name: str) -> str:
    return name.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def bag_files(payload: Mapping[str, bytes], info: Mapping[str, str]) -> dict[str, bytes]:
    """All files of a bag, paths relative to it.

    Parameters
    ----------
    payload
        Path under `data/` → bytes.
    info
        Fields of bag-info.txt; Payload-Oxum and Bag-Software-Agent are added.
    """
    data = {f"data/{name}": body for name, body in payload.items()}
    fields = {
        **info,
        "Bag-Software-Agent": SOFTWARE,
        "Payload-Oxum": f"{sum(map(len, data.values()))}.{len(data)}",
    }
    tags = {
        "bagit.txt": b"BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n",
        "bag-info.txt": "".join(f"{key}: {value}\n" for key, value in fields.items()).encode("utf-8"),
        "manifest-sha512.txt": manifest(data),
    }
    return {**data, **tags, "tagmanifest-sha512.txt": manifest(tags)}


def write_bag(target: Path, name: str, payload: Mapping[str, bytes], info: Mapping[str, str]) -> None:
    """Write a bag as a zip with one folder `name` at its top."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, body in sorted(bag_files(payload, info).items()):
            entry = zipfile.ZipInfo(f"{name}/{path}", _EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o100644 << 16
            archive.writestr(entry, body)
