"""`sacro-deltab aggregate`, `verify-pooled`, `job check` and `simulate-federation`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import InputError

_AGGREGATE = """Pool what two or more TREs released into one model, without a link between them.

NODE is what a node released: its session folder, or the zip SACRO-Viewer made. Every certificate is verified before a
number is read. A refusal says why and leaves no folder.

Ways to pool: noised moments are summed (default; exact), weights in one shared basis or folded weights are averaged by
released N. Averaging components that each node made for itself is refused.

Exit code: 0 pooled, 1 refused, 2 usage or unreadable input.

Example:

    sacro-deltab aggregate site-a site-b --basis basis.json --trust trust.json --expect 2
    --declare-disjoint "J. Doe, both data controllers asked" --out pooled
"""
_VERIFY = """Verify a pooled folder that was signed with --key, and optionally the node folders it was made of.

Exit code: 0 authentic and complete, 1 not, 2 unreadable.

Example:

    sacro-deltab verify-pooled pooled --trust trust.json --node site-a --node site-b
"""


def register(app: typer.Typer) -> None:
    """Add the federation's commands to the command line."""
    app.command("aggregate", help=_AGGREGATE)(aggregate)
    app.command("verify-pooled", help=_VERIFY)(verify_pooled)


def aggregate(
    nodes: Annotated[list[Path], typer.Argument(metavar="NODE...", help="Folders or zips.", show_default=False)],
    out: Annotated[Path, typer.Option("--out", help="Folder to write; must not exist.")],
    trust: Annotated[Path, typer.Option("--trust", help="Trust file with every node's keys.")],
    expect: Annotated[int | None, typer.Option("--expect", help="How many nodes there must be.")] = None,
    declare_disjoint: Annotated[
        str | None, typer.Option("--declare-disjoint", help="Who declares that nobody is in two nodes.")
    ] = None,
    way: Annotated[str | None, typer.Option("--way", help="summed_moments, fedavg_shared or fedavg_folded.")] = None,
    noise_model: Annotated[str | None, typer.Option("--noise-model", help="local, distributed or central.")] = None,
    basis: Annotated[Path | None, typer.Option("--basis", help="The shared basis of the job.")] = None,
    bounds: Annotated[Path | None, typer.Option("--bounds", help="The bounds file of the job.")] = None,
    rules: Annotated[str | None, typer.Option("--rules", help="Rule set: a name or a folder.")] = None,
    profile: Annotated[str | None, typer.Option("--profile", help="Site profile; may only tighten.")] = None,
    declare: Annotated[Path | None, typer.Option("--declare", help="What the researcher declares (JSON).")] = None,
    attest: Annotated[Path | None, typer.Option("--attest", help="What TRE staff attest (JSON).")] = None,
    history: Annotated[Path, typer.Option("--history", help="Memory of earlier rounds; made if missing.")] = Path(
        "federation-history.jsonl"
    ),
    require_decided: Annotated[
        bool, typer.Option("--require-decided", help="Refuse files whose review nobody has decided.")
    ] = False,
    key: Annotated[Path | None, typer.Option("--key", help="Sign the pooled statement with this key.")] = None,
    passphrase_file: Annotated[Path | None, typer.Option("--passphrase-file", help="The key's passphrase.")] = None,
    at: Annotated[str | None, typer.Option("--at", help="Verify as of this day (YYYY-MM-DD); default now.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Report as JSON on stdout.")] = False,
) -> None:
    """See _AGGREGATE."""
    from ..federation.aggregate import Order
    from ..federation.aggregate import aggregate as run
    from ..federation.report import report_json, report_lines

    order = Order(
        paths=tuple(nodes), out=out, trust=trust, expect=expect, disjoint=declare_disjoint, way=way,
        noise_model=noise_model, basis=basis, bounds=bounds, rules=rules, profile=profile, declare=declare,
        attest=attest, history=history, key=key, passphrase=_passphrase(key, passphrase_file),
        require_decided=require_decided, at=_day(at),
    )  # fmt: skip
    pooling = run(order, _progress)
    if as_json:
        _print_json({**report_json(pooling), "folder": str(out)})
        return
    typer.echo("\n".join([*report_lines(pooling), "", f"Folder: {out}"]))


def verify_pooled(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A pooled folder.", show_default=False)],
    trust: Annotated[Path, typer.Option("--trust", help="Trust file with the aggregator's key.")],
    node: Annotated[list[Path] | None, typer.Option("--node", help="A node's folder or zip; repeat.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Report as JSON on stdout.")] = False,
) -> None:
    """See _VERIFY."""
    from ..federation.verify import verify_pooled as verify

    statement, problems = verify(folder, trust, materials=node or ())
    if as_json:
        predicate = {} if statement is None else statement["predicate"]
        _print_json({"schema": "sacro_deltab/verify-pooled/1", "ok": not problems, "problems": problems,
                     "pooled_id": predicate.get("pooled_id"), "verdict": predicate.get("verdict")})  # fmt: skip
    elif problems:
        typer.echo("\n".join([f"FAIL {p}" for p in problems]))
    else:
        typer.echo("authentic and complete")
    raise typer.Exit(1 if problems else 0)


def _passphrase(key: Path | None, file: Path | None) -> bytes | None:
    if key is None:
        return None
    from ..certificate.keys import read_passphrase
    from .certify import prompt_passphrase

    return read_passphrase(file, prompt_passphrase)


def _day(text: str | None) -> Any:
    from datetime import UTC, datetime

    if text is None:
        return None
    try:
        return datetime.strptime(text, "%Y-%m-%d").replace(hour=12, tzinfo=UTC)
    except ValueError:
        raise InputError("a day is written YYYY-MM-DD.", place="--at") from None


def _progress(text: str) -> None:
    typer.echo(f"… {text}", err=True)


def _print_json(data: Any) -> None:
    import json

    typer.echo(json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False))
