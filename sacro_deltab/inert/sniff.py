"""Recognise a file by its content; its name is only ever a second opinion."""

from __future__ import annotations

import pickletools
import re

_MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"\x93NUMPY", "npy"),
    (b"PK\x03\x04", "zip"),
    (b"PK\x05\x06", "zip"),
    (b"\x89PNG\r\n\x1a\n", "png"),
    (b"\xff\xd8\xff", "jpeg"),
    (b"GIF87a", "gif"),
    (b"GIF89a", "gif"),
    (b"PAR1", "parquet"),
    (b"\x89HDF\r\n\x1a\n", "hdf5"),
    (b"%PDF-", "pdf"),
    (b"\x1f\x8b", "gzip"),
    (b"BZh", "bzip2"),
    (b"\xfd7zXZ\x00", "xz"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"7z\xbc\xaf\x27\x1c", "7z"),
    (b"Rar!", "rar"),
    (b"ARROW1", "arrow"),
    (b"FEA1", "feather"),
    (b"SQLite format 3\x00", "sqlite"),
    (b"\xd0\xcf\x11\xe0", "office"),
    (b"MATLAB 5.0", "matlab"),
    (b"RDX", "rdata"),
    (b"X\n\x00\x00", "rdata"),
    (b"$FL2", "spss"),
    (b"$FL3", "spss"),
    (b"<stata_dta>", "stata"),
    (b"II*\x00", "tiff"),
    (b"MM\x00*", "tiff"),
    (b"BM", "bmp"),
    (b"RIFF", "riff"),
    (b"\x7fELF", "program"),
    (b"MZ", "program"),
    (b"\x78\x9c", "zlib"),
    (b"\x78\x01", "zlib"),
    (b"\x78\x5e", "zlib"),
    (b"\x78\xda", "zlib"),
)
_INSIDE = ((8, b'{"', "safetensors"), (128, b"DICM", "dicom"), (344, b"n+1\x00", "nifti"), (344, b"ni1\x00", "nifti"))
_OLD_STATA = re.compile(rb"[\x68-\x73][\x01\x02]\x01\x00")
_PICKLE_GLOBAL = re.compile(rb"c[A-Za-z_][\w.]*\n[A-Za-z_][\w.]*\n")
_MARKUP = re.compile(rb"^\s*<(?:!doctype|html|head|body|svg|\?xml|script|table|div|p)\b", re.I)


def looks_binary(data: bytes) -> bool:
    """Whether the first 64 KiB hold bytes that no text has."""
    head = data[:65536]
    return any(byte in head for byte in b"\x00\x01\x02\x03\x04\x05\x06\x07\x08\x0e\x0f\x10\x11\x12\x14\x15\x16\x17")


def sniff(data: bytes) -> str:
    """Kind of a file from its bytes.

    Returns one of: empty, pickle, npy, zip, tar, png, jpeg, gif, svg, html, json, text, or the name of a format
    that is only recognised so that it can be refused with the right alternative.
    """
    if not data:
        return "empty"
    if data[:1] == b"\x80" and len(data) > 2 and data[1] <= 5:
        return "pickle"
    for mark, kind in _MAGIC:
        if data.startswith(mark) and (len(mark) > 2 or not mark.isascii() or looks_binary(data)):
            return kind  # BMP, DOS programs and x^ are marks of two letters that honest text can start with
    if len(data) > 262 and data[257:262] == b"ustar":
        return "tar"
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "utf16"
    if _is_text_pickle(data):
        return "pickle"
    for at, mark, kind in _INSIDE:
        if data[at : at + len(mark)] == mark:
            return kind
    if looks_binary(data):
        return "stata" if _OLD_STATA.match(data) else "binary"
    head = data[3:4096] if data.startswith(b"\xef\xbb\xbf") else data[:4096]
    if _MARKUP.match(head):
        return "svg" if b"<svg" in head.lower() else "html"
    stripped = head.lstrip()
    if stripped[:1] in (b"{", b"[") and _jsonish(data):
        return "json"
    return "text"


def _jsonish(data: bytes) -> bool:
    tail = data.rstrip()[-1:]
    return tail in (b"}", b"]") or data.lstrip()[:1] == b"{"


def _is_text_pickle(data: bytes) -> bool:
    """Protocols 0 and 1 have no mark: they end in STOP and their operations parse."""
    if not data.rstrip().endswith(b"."):
        return False
    if _PICKLE_GLOBAL.match(data) or data[:2] in (b"(d", b"(l", b"(i", b"}q", b"]q", b"(K"):
        return True

    try:
        for count, _ in enumerate(pickletools.genops(data)):
            if count > 64:
                return True
    except Exception:
        return False
    return count >= 2
