"""`sacro-deltab rules test|prove|sign|approve|waiver`: does the law hold, who stands for it, exceptions."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..base.errors import InputError
from ..base.writing import write_file
from .asking import find_trust, prompt_passphrase

if TYPE_CHECKING:
    from ..certificate.law import Text

waiver_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Exceptions: ask for one, sign it.")

RulesOption = Annotated[
    str | None,
    typer.Option("--rules", help="A packaged name or a folder (./mine).", show_default="the packaged set"),
]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON object on stdout, nothing else.")]
ProfileOption = Annotated[
    str | None, typer.Option("--layer", "--profile", help="Top layer: a file, or a packaged name.", show_default=False)
]
KeyOption = Annotated[Path, typer.Option("--key", help="Private key of the committee (role dac).", show_default=False)]
TrustOption = Annotated[
    Path | None,
    typer.Option("--trust", help="Trust file: whose signatures count; to sign, trust.json beside the key by default."),
]
PassphraseOption = Annotated[
    Path | None, typer.Option("--passphrase-file", help="File with the key's passphrase.", show_default=False)
]


def register(rules_app: typer.Typer) -> None:
    """Add what a committee does with the law to the `rules` group."""
    rules_app.command("test", epilog="Example: sacro-deltab rules test --rules rules/deltab-disclosure")(test_rules)
    rules_app.command(epilog="Example: sacro-deltab rules prove --rules ./my-rules --against deltab-disclosure")(prove)
    rules_app.command(epilog="Example: sacro-deltab rules sign D-12 --key dac.pem --rules ./my-rules")(sign)
    rules_app.command(epilog="Example: sacro-deltab rules approve --key dac.pem --rules ./my-rules --from 2027-01-01")(
        approve
    )
    rules_app.add_typer(waiver_app, name="waiver")


def test_rules(rules: RulesOption = None, as_json: JsonOption = False) -> None:
    """Run every example, change every limit by one step and see whether one notices, and prove what the clauses ask.

    Exit 0: every example passes, at least 98 % of the changes are noticed, every requirement holds. 1: not so.
    """
    from ..rules import load_ruleset  # late: a command loads what it needs
    from ..rules.own_tests import test_ruleset

    report = test_ruleset(load_ruleset(rules))
    _tell(report.to_json(), report.lines(), as_json)
    raise typer.Exit(0 if report.ok else 1)


def prove(
    rules: RulesOption = None,
    profile: ProfileOption = None,
    against: Annotated[
        str | None, typer.Option("--against", help="Another rule set: what it stops and this one lets through.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Decide for every kind of output whether anything can pass that breaks a clause; say which rules never decide.

    Exit 0: every requirement holds (and, with --against, nothing more gets through). 1: a case that gets through.
    """
    from ..rules import load_ruleset  # late: a command loads what it needs
    from ..rules.prove import let_through
    from ..rules.prove import prove as prove_all  # late: a command loads what it needs

    ruleset = load_ruleset(rules, profile=profile)
    proof = prove_all(ruleset)
    more = let_through(load_ruleset(against), ruleset) if against is not None else []
    lines = proof.lines()
    if against is not None:
        lines.append(f"Against {against}: {len(more) or 'no'} cases that it stops get through here")
        lines += [f"  {gap}" for gap in more]
    data = {**proof.to_json(), "against": [str(gap) for gap in more]}
    _tell(data, lines, as_json)
    raise typer.Exit(1 if proof.gaps or more else 0)


def _tell(data: object, lines: list[str], as_json: bool) -> None:
    typer.echo(json.dumps(data, indent=1, ensure_ascii=False, default=str) if as_json else "\n".join(lines))


def sign(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Ids of decisions, or a layer's file.")],
    key: KeyOption,
    rules: RulesOption = None,
    trust: TrustOption = None,
    passphrase_file: PassphraseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Sign decisions, or a layer that loosens, for the committee: a detached envelope beside each text.

    The signature covers the full text; a changed word ends it. Where the trust file asks for several, each signs.
    """
    from ..base.digests import digest_file  # late: a command loads what it needs
    from ..certificate.law import Text
    from ..rules import load_base  # late: a command loads what it needs
    from ..rules.digests import decision_digest
    from ..rules.schema_check import did_you_mean  # late: a command loads what it needs
    from ..rules.seals import beside, within

    files = [Path(name) for name in names if Path(name).is_file()]
    texts = [(beside(file), Text("layer", _layer_id(file), digest_file(file).sha256)) for file in files]
    ruleset = None if len(files) == len(names) else load_base(_own(rules))
    for name in names:
        if ruleset is None or Path(name) in files:
            continue
        decision = ruleset.decisions.get(name)
        if decision is None:
            raise InputError(f"there is no decision {name!r}{did_you_mean(name, ruleset.decisions)}, and no such file")
        texts.append((within(ruleset.folder, name), Text("decision", name, decision_digest(decision))))
    sign_texts(texts, key, trust, passphrase_file, as_json)


def approve(
    key: KeyOption,
    rules: RulesOption = None,
    starts: Annotated[str | None, typer.Option("--from", help="First day (YYYY-MM-DD); at once without it.")] = None,
    ends: Annotated[str | None, typer.Option("--until", help="Last day; afterwards the set is retired.")] = None,
    trust: TrustOption = None,
    passphrase_file: PassphraseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Approve a rule set for the committee, as it stands: records under it no longer say DRAFT.

    Every decision in force that is LOOSER than the documents' words must have been signed before.

    Exit 0: signed. 2: it is retired, fails its own tests or proofs, or rests on a looser reading nobody signed.
    """
    from ..certificate.law import Text, committee  # late: a command loads what it needs
    from ..rules import load_ruleset
    from ..rules.own_tests import faults, looser_unsigned  # late: a command loads what it needs
    from ..rules.seals import within

    folder = _own(rules)
    ruleset = load_ruleset(folder, seals=committee(find_trust(trust, key, folder)))
    wrong = ["it is retired", *faults(ruleset)] if ruleset.status == "retired" else faults(ruleset)
    if wrong:
        raise InputError(f"{ruleset.id} cannot be approved: {wrong[0]}", next_step="`rules test` lists what fails.")
    if open_ones := looser_unsigned(ruleset):
        raise InputError(
            f"{ruleset.id} cannot be approved: {len(open_ones)} looser readings in force are signed by nobody",
            next_step=f"`rules sign {' '.join(open_ones)} --key KEY --rules DIR`, or take the reading not taken.",
        )
    days = [None if d is None else _day(d) for d in (starts, ends)]
    if days[0] is not None and days[1] is not None and days[1] < days[0]:
        raise InputError("it would end before it starts", place="--until")
    text = Text("approval", ruleset.id, ruleset.sha256, days[0], days[1])
    sign_texts([(within(ruleset.folder, "approval"), text)], key, trust, passphrase_file, as_json)


def _own(rules: str | None) -> Path:
    if rules is None:
        raise InputError("the packaged rule set is not changed", next_step="Copy it and give the copy with --rules.")
    folder = Path(rules)
    if not folder.is_dir():
        raise InputError("there is no such folder", path=folder)
    return folder


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise InputError(f"{text!r} is no day of the calendar", next_step="Write it as in 2027-01-31.") from None


def _layer_id(path: Path) -> str:
    from ..rules.layers import layer_id  # late: a command loads what it needs

    return layer_id(path)


def sign_texts(
    texts: list[tuple[Path, Text]], key: Path, trust: Path | None, passphrase: Path | None, as_json: bool
) -> None:
    from ..certificate.keys import load_key, read_passphrase  # late: a command loads what it needs
    from ..certificate.law import sign_text
    from ..ledger.trust import load_trust  # late: a command loads what it needs

    trusted = load_trust(find_trust(trust, key, texts[0][0].parent))
    opened = load_key(key, read_passphrase(passphrase, prompt_passphrase))
    told, lines = [], []
    for place, t in texts:
        seal = sign_text(place, t, opened, trusted, datetime.now(UTC))
        told.append({"signed": t.kind, "name": t.name, "sha256": t.sha256, "by": list(seal.keys), "file": str(place)})
        more = "" if seal.keys else "; more signatures are needed before it counts"
        lines.append(f"{place}: {t.kind} {t.name} signed on {seal.on.isoformat()}{more}")
    _tell(told[0] if len(told) == 1 else told, lines, as_json)


@waiver_app.command("sign", epilog="Example: sacro-deltab rules waiver sign waivers/W-2026-001.yaml --key dac.pem")
def sign_waiver(
    file: Annotated[Path, typer.Argument(help="The waiver, filled in.")],
    key: KeyOption,
    trust: TrustOption = None,
    passphrase_file: PassphraseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Sign a waiver for the committee; where a trust file knows the committee, no other waiver holds."""
    from ..base.digests import digest_file  # late: a command loads what it needs
    from ..certificate.law import Text
    from ..rules import load_waivers  # late: a command loads what it needs
    from ..rules.seals import beside

    if not file.is_file():
        raise InputError("there is no such waiver", path=file)
    (waiver,) = load_waivers(file)
    text = Text("waiver", waiver.id, digest_file(file).sha256)
    sign_texts([(beside(file), text)], key, trust, passphrase_file, as_json)


@waiver_app.command(epilog="Example: sacro-deltab rules waiver request outputs idp_summary --out waivers/")
def request(
    folder: Annotated[Path, typer.Argument(help="Session folder with inside/.")],
    name: Annotated[str, typer.Argument(help="Name of the blocked output.")],
    out: Annotated[Path | None, typer.Option("--out", help="Folder for the files; stdout without it.")] = None,
    rules: RulesOption = None,
    profile: ProfileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write the waiver that this output would need, with the digests it must hold, for the committee to fill in.

    Exit 0: written. 2: nothing blocks it, or what blocks it can never be waived.
    """
    from ..rules import decide, load_ruleset  # late: a command loads what it needs
    from ..rules.stored import find_outputs
    from ..rules.waivers import request as write_request  # late: a command loads what it needs
    from ..rules.waivers import to_yaml

    ruleset = load_ruleset(rules, profile=profile)
    stored = find_outputs(folder, name)[0]
    if stored.sha256 is None:
        raise InputError(
            f"the digest of {name!r} as it would leave is not in the evidence",
            path=folder,
            next_step="Release the output again with this version; then ask for the waiver.",
        )
    today = datetime.now(UTC).date()
    asked = write_request(ruleset, decide(ruleset, stored.facts), stored.sha256, today)
    if not asked:
        raise InputError(
            f"no waiver can help {name!r}: no rule that can be waived blocks it",
            next_step=f"`sacro-deltab rules explain {folder} {name}` says what does.",
        )
    files = {w["waiver"]["id"]: to_yaml(w, ruleset.rule(w["waiver"]["rule"]).title) for w in asked}
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        for waiver_id, text in files.items():
            write_file(out / f"{waiver_id}.yaml", text)
    if as_json:
        typer.echo(json.dumps({"output": name, "waivers": [w["waiver"] for w in asked]}, indent=1, ensure_ascii=False))
    else:
        typer.echo("\n".join(files.values()) if out is None else "\n".join(str(out / f"{i}.yaml") for i in files))
