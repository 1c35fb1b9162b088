"""Is this a place where a SQLite budget can be kept? Network file systems and broken locks are refused."""

from __future__ import annotations

import os
from pathlib import Path

from ..base.errors import LedgerError

# SQLite's write-ahead log needs shared memory between all writers, which none of these give across machines.
NETWORK_FILE_SYSTEMS = frozenset(
    [
        "nfs",
        "nfs4",
        "cifs",
        "smb",
        "smb2",
        "smb3",
        "smbfs",
        "ncpfs",
        "afs",
        "afpfs",
        "coda",
        "ceph",
        "glusterfs",
        "lustre",
        "gpfs",
        "beegfs",
        "orangefs",
        "pvfs2",
        "ocfs2",
        "gfs2",
        "9p",
        "davfs",
        "webdav",
        "fuse.sshfs",
        "fuse.glusterfs",
        "fuse.ceph",
        "fuse.s3fs",
        "fuse.davfs",
        "fuse.rclone",
        "fuse.gcsfuse",
        "fuse.blobfuse",
        "fuse.juicefs",
        "fuse.mfs",
    ]
)
_MOUNTS = Path("/proc/self/mountinfo")


def file_system_of(path: Path, mounts: Path = _MOUNTS) -> str | None:
    """Type of the file system that holds `path`, from the kernel's mount table; None where there is no such table."""
    try:
        lines = mounts.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    target = path.resolve()
    best, kind = -1, None
    for line in lines:
        left, dash, right = line.partition(" - ")
        fields = left.split()
        if not dash or len(fields) < 5:
            continue
        point = Path(fields[4].replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\"))
        # >= because a later mount on the same point covers the earlier one
        if (point == target or point in target.parents) and len(point.parts) >= best:
            best, kind = len(point.parts), right.split()[0]
    return kind


def locks_work(folder: Path) -> bool | None:
    """True when a second holder is refused a lock that the first one has; None where this cannot be asked."""
    try:
        import fcntl
        import struct

        command = fcntl.F_OFD_SETLK
    except (ImportError, AttributeError):
        return None
    # struct flock: whole file, exclusive; owned by the open file, not the process, so that one process can test it
    request = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
    probe = folder / f".sacro-deltab-lock-{os.getpid()}-{os.urandom(4).hex()}"
    first = second = -1
    try:
        first = os.open(probe, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        second = os.open(probe, os.O_RDWR)
        try:
            fcntl.fcntl(first, command, request)
        except OSError:
            return False
        try:
            fcntl.fcntl(second, command, request)
        except OSError:
            return True
        return False
    except OSError:
        return None  # a folder that cannot be written: opening the ledger itself says so better
    finally:
        for handle in (first, second):
            if handle >= 0:
                os.close(handle)
        if first >= 0:
            probe.unlink(missing_ok=True)


def refuse_unsafe_place(path: Path) -> None:
    """Refuse a ledger file on a network file system, or where locks do not lock.

    Raises
    ------
    LedgerError
        With the file system's type and the way out (PostgreSQL).
    """
    advice = "Keep the ledger on a local disk, or use a PostgreSQL ledger (postgresql://...)."
    kind = file_system_of(path)
    if kind is not None and kind.lower() in NETWORK_FILE_SYSTEMS:
        raise LedgerError(
            f"this file is on a network file system ({kind}), where two machines could spend the same budget",
            path=path,
            next_step=advice,
        )
    if locks_work(path.parent) is False:
        raise LedgerError(
            "file locks do not work here, so two processes could spend the same budget", path=path, next_step=advice
        )
