"""`sacro-deltab keygen`, `certify`, `verify`, `crate`: keys, signing, verifying, packaging."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..base.errors import InputError
from ..base.verdicts import NOTHING
from ..base.writing import write_file
from .asking import TRUST_VARIABLE, day_of, find_trust, prompt_passphrase

if TYPE_CHECKING:
    from ..certificate.certify import Certified
    from ..certificate.verify import VerifyResult
    from ..judging.report import Report


_CERTIFY_HELP = """Check DIR again and sign what is found. Exit code as `check`: 0 pass, 1 fail or nothing to
release, 3 review, 2 unreadable.

The signed record goes into DIR/certificate.dsse.json. Without a ledger that the trust file pins, neither `pass` nor
`formal` is signed. A fail is signed as a fail. Every fact that could not be measured again is named.

A key of checker1, checker2 or dac adds its signature to the record that is there, if it still holds.

Example: sacro-deltab certify outputs --key tool.pem --trust trust.json --ledger budget.db
"""
_VERIFY_HELP = """Verify a certified folder, or the zip that SACRO-Viewer made of it, offline.

Exit code: 0 the record is authentic and complete, whatever verdict it carries; 1 a check fails; 2 unreadable.

Example: sacro-deltab verify outputs --trust trust.json --ledger budget.db
"""
_KEYGEN_HELP = """Make an encrypted Ed25519 key and enter it in a trust file, where it counts at once for two years.

The passphrase comes from a prompt, --passphrase-file (one trailing newline is dropped) or $SACRO_DELTAB_PASSPHRASE.
Keep key and trust file where researchers cannot write.

Example: sacro-deltab keygen --out tool.pem --role tool --trust trust.json
"""
_CRATE_HELP = """Package a certified folder as a Five Safes RO-Crate 0.4 (zip, BagIt 1.0), offline.

Outputs are left out when the certificate says fail, and so are files that are kept inside.
Needs the extra: pip install 'sacro-deltab[crate]'. Exit code: 0 written with outputs, 1 the certificate does not hold,
or the crate only says that nothing is released, 2 unreadable.

Example: sacro-deltab crate outputs --trust trust.json --out release.zip
"""

_KEY = typer.Option("--key", help="Private key (encrypted PKCS#8).")
_PASSPHRASE = typer.Option("--passphrase-file", help="File with the key's passphrase.")
_TRUST = typer.Option("--trust", help=f"Trust file. Default: ${TRUST_VARIABLE}, else trust.json beside the key.")
_JSON = typer.Option("--json", help="Print JSON alone.")


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("certify", help=_CERTIFY_HELP)(certify)
    app.command("verify", help=_VERIFY_HELP)(verify)
    app.command("keygen", help=_KEYGEN_HELP)(keygen)
    app.command("attest", epilog="Example: sacro-deltab attest attest.json --key checker1.pem")(attest)
    app.command("crate", help=_CRATE_HELP)(crate)


def attest(
    file: Annotated[Path, typer.Argument(help="What TRE staff attest (JSON or YAML, role tre_staff).")],
    key: Annotated[Path, _KEY],
    trust: Annotated[Path | None, _TRUST] = None,
    passphrase_file: Annotated[Path | None, _PASSPHRASE] = None,
    as_json: Annotated[bool, _JSON] = False,
) -> None:
    """Sign what TRE staff attest of a request, as a checker; `check` and `certify` then say who signed it."""
    from ..base.digests import digest_file  # late: a command loads what it needs
    from ..certificate.law import ATTESTATION, Text
    from ..judging.said import read_said  # late: a command loads what it needs
    from ..rules.seals import beside
    from .law import sign_texts

    read_said(file, "tre_staff")
    text = Text(ATTESTATION, ATTESTATION, digest_file(file).sha256)
    sign_texts([(beside(file), text)], key, trust, passphrase_file, as_json)


def keygen(
    out: Annotated[Path, typer.Option("--out", help="File for the private key; must not exist.")],
    role: Annotated[str, typer.Option("--role", help="tool, checker1, checker2 or dac.")],
    trust: Annotated[Path, typer.Option("--trust", help="Trust file; made if missing.")],
    node: Annotated[str, typer.Option("--node", help="Node the key signs for.")] = "local",
    passphrase_file: Annotated[Path | None, _PASSPHRASE] = None,
    as_json: Annotated[bool, _JSON] = False,
) -> None:
    """Make a key."""
    from ..certificate.keys import keygen as make  # late: a command loads what it needs
    from ..certificate.keys import read_passphrase

    key = make(out, role, trust, read_passphrase(passphrase_file, _new_passphrase), node=node)
    if as_json:
        _print({"keyid": key.keyid, "role": role, "node": node, "key": str(out), "trust": str(trust)})
    else:
        typer.echo(f"{out}: private key {key.keyid}, encrypted")
        typer.echo(f"{trust}: may sign as {role} at node {node} from now for two years")


def _new_passphrase() -> str:

    if not sys.stdin.isatty():
        return ""
    return str(typer.prompt("Passphrase for the new key", hide_input=True, confirmation_prompt=True, err=True))


def certify(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A finalised session folder.", show_default=False)],
    key: Annotated[Path, _KEY],
    passphrase_file: Annotated[Path | None, _PASSPHRASE] = None,
    trust: Annotated[Path | None, _TRUST] = None,
    ledger: Annotated[str, typer.Option("--ledger", help="The privacy ledger (file or URL).")] = "budget.db",
    cohort: Annotated[Path | None, typer.Option("--cohort", help="The cohort: facts are measured again.")] = None,
    rules: Annotated[str | None, typer.Option("--rules", help="Rule set: name or folder.")] = None,
    profile: Annotated[str | None, typer.Option("--layer", "--profile", help="Top layer.")] = None,
    waivers: Annotated[Path | None, typer.Option("--waivers", help="Waivers: file or folder.")] = None,
    no_waivers: Annotated[bool, typer.Option("--no-waivers", help="Certify without any waiver.")] = False,
    facts: Annotated[
        Path | None, typer.Option("--facts", help="Facts about files without evidence, as `check`.")
    ] = None,
    declare: Annotated[
        Path | None, typer.Option("--declare", help="What the researcher declares now (role researcher).")
    ] = None,
    attest: Annotated[
        Path | None, typer.Option("--attest", help="What TRE staff attest (role tre_staff); same as --facts.")
    ] = None,
    page: Annotated[Path | None, typer.Option("--page", help="Also write the printable page to this file.")] = None,
    add: Annotated[bool, typer.Option("--add", help="Add a signature to the record that is there.")] = False,
    as_json: Annotated[bool, _JSON] = False,
) -> None:
    """Check again and sign."""
    from ..certificate.certify import Request, certify_folder  # late: a command loads what it needs
    from ..certificate.keys import load_key, read_passphrase
    from ..certificate.policy import policy_of  # late: a command loads what it needs
    from ..ledger.trust import load_trust
    from .check import _attested  # late: a command loads what it needs
    from .check import _rules as rules_and_waivers

    trusted = load_trust(find_trust(trust, key, folder))
    opened = load_key(key, read_passphrase(passphrase_file, prompt_passphrase))
    if no_waivers and waivers is not None:
        raise InputError("--waivers and --no-waivers exclude each other")
    ruleset, used = rules_and_waivers(rules, profile, waivers, no_waivers, trust=trusted)  # as `check` has them
    said = _attested(facts, attest)

    def check(where: Path) -> Report:
        from ..check import check_paths  # late: a command loads what it needs

        typer.echo("checking the folder again", err=True)
        known = _existing(ledger)
        return check_paths(
            [where],
            ruleset=ruleset,
            facts_file=said,
            declare=declare,
            cohort=cohort,
            trust=trusted,
            ledger=known,
            waivers=used,
        )

    request = Request(trusted, policy_of(ruleset), check, ledger=_existing(ledger), waivers=used, add=add)
    done = certify_folder(folder, opened, request)
    if page is not None:
        _write_page(folder, page)
    _print_certified(done, as_json)
    raise typer.Exit(done.exit_code)


def _existing(ledger: str) -> str | None:
    """A ledger given by URL, or a file that is there; the default file may be missing."""
    if "://" in ledger or Path(ledger).exists():
        return ledger
    if ledger != "budget.db":
        raise InputError("there is no such ledger.", path=ledger)
    return None


def _print_certified(done: Certified, as_json: bool) -> None:
    if as_json:
        _print(
            {
                "verdict": done.verdict,
                "label": done.label,
                "certificate_id": done.certificate_id,
                "keyid": done.keyid,
                "role": done.role,
                "recorded_not_recomputed": list(done.recorded),
                "capped": list(done.caps),
                "notes": list(done.notes),
            }
        )
        return
    for name in done.recorded:
        typer.echo(f"recorded, not recomputed: {name}")
    for why in done.caps:
        typer.echo(f"neither pass nor formal: {why}")
    for note in done.notes:
        typer.echo(note)
    typer.echo(f"signed as {done.role} by {done.keyid[:16]}: verdict {done.verdict}, noise {done.label}")


def verify(
    path: Annotated[Path, typer.Argument(metavar="DIR", help="A folder, or the viewer's zip.", show_default=False)],
    trust: Annotated[Path | None, typer.Option("--trust", help=f"Trust file. Default: ${TRUST_VARIABLE}.")] = None,
    rules: Annotated[str | None, typer.Option("--rules", help="Rule set the record must name.")] = None,
    profile: Annotated[str | None, typer.Option("--layer", "--profile", help="Top layer the record must name.")] = None,
    ledger: Annotated[str | None, typer.Option("--ledger", help="Ledger the record's head must be in.")] = None,
    at: Annotated[str | None, typer.Option("--at", help="Verify as of this day (YYYY-MM-DD); default now.")] = None,
    released: Annotated[bool, typer.Option("--released", help="DIR is an unpacked release of the viewer.")] = False,
    page: Annotated[
        Path | None, typer.Option("--page", help="Write the printable page of a record that holds.")
    ] = None,
    as_json: Annotated[bool, _JSON] = False,
) -> None:
    """Verify."""
    from ..certificate.verify import verify_path  # late: a command loads what it needs
    from ..federation.verify import is_pooled

    if is_pooled(path):
        from .aggregate import verify_pooled_folder  # late: a command loads what it needs

        verify_pooled_folder(path, find_trust(trust, None, path), at=at, as_json=as_json)
    result = verify_path(
        path,
        find_trust(trust, None, path),
        rules=rules,
        profile=profile,
        ledger=ledger,
        at=None if at is None else day_of(at),
        released=released,
    )
    _print_verified(result, as_json)
    if page is not None and result.ok and result.statement is not None:
        from ..certificate.page import render_page  # late: a command loads what it needs

        write_file(page, render_page(result.statement))
    raise typer.Exit(result.exit_code)


def _print_verified(result: VerifyResult, as_json: bool) -> None:
    if as_json:
        _print(result.to_json())
        return
    for check in result.checks:
        typer.echo(check.line())
    typer.echo(result.conclusion())


def crate(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A certified folder.", show_default=False)],
    trust: Annotated[Path | None, typer.Option("--trust", help=f"Trust file. Default: ${TRUST_VARIABLE}.")] = None,
    out: Annotated[Path | None, typer.Option("--out", help="The zip. Default: DIR.crate.zip beside DIR.")] = None,
    project: Annotated[str | None, typer.Option("--project", help="Responsible project.")] = None,
    agent: Annotated[str | None, typer.Option("--agent", help="Person who asks for the outputs.")] = None,
    tre: Annotated[str | None, typer.Option("--tre", help="Name of the TRE.")] = None,
    workflow: Annotated[str | None, typer.Option("--workflow", help="Permalink of a Workflow RO-Crate.")] = None,
    as_json: Annotated[bool, _JSON] = False,
) -> None:
    """Package."""
    from ..certificate.crate import Names, write_crate  # late: a command loads what it needs

    target = out if out is not None else folder.resolve().with_name(f"{folder.resolve().name}.crate.zip")
    named = {"project": project, "agent": agent, "tre": tre, "workflow": workflow}
    names = Names(**{key: value for key, value in named.items() if value is not None})
    done = write_crate(folder, find_trust(trust, None, folder), target, names)
    if as_json:
        _print({"crate": str(target), "id": done.urn, "verdict": done.verdict, "outputs": list(done.outputs)})
        raise typer.Exit(0 if done.outputs else 1)
    for name in done.outputs:
        typer.echo(f"packed {name}")
    if not done.outputs:
        typer.echo(f"no outputs packed: {NOTHING if done.verdict == NOTHING else 'the disclosure check failed'}")
    typer.echo(f"{target}: {done.urn}")
    raise typer.Exit(0 if done.outputs else 1)


def _write_page(folder: Path, page: Path) -> None:
    from ..base.canonical import read_canonical  # late: a command loads what it needs
    from ..certificate.envelope import read_envelope
    from ..certificate.layout import ENVELOPE  # late: a command loads what it needs
    from ..certificate.page import render_page

    payload = read_envelope(folder / ENVELOPE).payload
    write_file(page, render_page(read_canonical(payload, path=ENVELOPE, what="statement")))


def _print(value: object) -> None:
    typer.echo(json.dumps(value, indent=1, ensure_ascii=False))
