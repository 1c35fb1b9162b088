"""Putting a file in its place whole: whoever reads it sees the old bytes or the new ones, never half of either."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from .errors import InputError

_STEP = "Check the folder, its permissions and the space left."


def write_file(path: str | Path, data: bytes | str, *, mode: int | None = None, new: bool = False) -> Path:
    """Write `data` (text as UTF-8), force it to disk, and only then give it its name.

    Parameters
    ----------
    mode
        Permissions; by default those of the file that stands there, else 0o644.
    new
        Refuse a name that is taken, at the moment of writing.

    Raises
    ------
    InputError
        The name is taken (with `new`), or the file cannot be written. Nothing half-done stays behind.
    """
    path = Path(path)
    body = data.encode("utf-8") if isinstance(data, str) else data
    part = path.with_name(f".{path.name[:200]}.{secrets.token_hex(4)}.part")
    claimed = False
    try:
        if new:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
            claimed = True
        if mode is None:
            mode = path.stat().st_mode & 0o777 if path.exists() and not new else 0o644
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as handle:
            handle.write(body)
            handle.flush()
            os.fsync(handle.fileno())
        part.chmod(mode)
        part.replace(path)
        claimed = False
    except FileExistsError:
        raise InputError("this file exists and is never overwritten", path=path, next_step="Name another.") from None
    except OSError as error:
        raise InputError(f"it cannot be written ({error.strerror})", path=path, next_step=_STEP) from None
    finally:
        part.unlink(missing_ok=True)
        if claimed:
            path.unlink(missing_ok=True)
    return path
