"""The signed record as a text that the viewer can show: what it says in a few lines, then the envelope in short ones.

SACRO-Viewer shows every file that is no table as it is written, and one long line moves its buttons out of the window.
The text follows from the envelope byte for byte, so it says nothing of its own.
"""

from __future__ import annotations

from ..base.canonical import decode_base64, encode_base64, read_canonical
from ..base.errors import CertificateError, SacroDeltabError
from .envelope import parse_envelope
from .layout import ENVELOPE, SHOWN
from .policy import draft_mark

_WIDTH = 76
_BEGIN, _END = "-----BEGIN DSSE ENVELOPE-----", "-----END DSSE ENVELOPE-----"


def shown_envelope(data: bytes) -> bytes:
    """The text form of the bytes of an envelope."""
    encoded = encode_base64(data)
    lines = [encoded[i : i + _WIDTH] for i in range(0, len(encoded), _WIDTH)]
    return "\n".join([*_words(data), "", _BEGIN, *lines, _END, ""]).encode("ascii")


def hidden_envelope(text: bytes) -> bytes:
    """The envelope back from its text form.

    Raises
    ------
    CertificateError
        It is not the text form of an envelope.
    """
    try:
        lines = text.decode("ascii").split("\n")
        first, last = lines.index(_BEGIN), lines.index(_END)
        data = decode_base64("".join(lines[first + 1 : last]), path=SHOWN, what="envelope")
        if shown_envelope(data) == text:
            return data
    except (ValueError, SacroDeltabError):
        pass
    raise CertificateError(
        "this is not the text form of a signed record.", path=SHOWN, next_step="ask for the file as it was written."
    )


def _words(data: bytes) -> list[str]:
    """Verdict, policy and word for the noise, as the envelope says them."""
    envelope = parse_envelope(data)
    if not envelope.signed:
        return ["Nobody has signed this release yet."]
    predicate = read_canonical(envelope.payload, path=ENVELOPE, what="statement")["predicate"]
    policy = predicate["policy"]
    return [
        "Certificate of sacro_deltab, the signed record below; `sacro-deltab verify` reads it.",
        f"verdict: {predicate['verdict']}",
        f"noise: {predicate['privacy']['label']}",
        f"policy: {policy['id']} {policy['version']}{draft_mark(policy)}"[:_WIDTH],
        *([f"layer: {policy['profile']['id']}"[:_WIDTH]] if policy["profile"] else []),
        f"signed: {predicate['made']['time']}, {len(envelope.signatures)} signature(s)",
    ]
