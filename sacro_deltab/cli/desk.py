"""`sacro-deltab desk QUEUE --key K`: the checker's desk in a browser on this machine."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Annotated, Any

import typer

from ..base.errors import InputError
from .asking import find_trust, prompt_passphrase

_HELP = """Decide the requests of a queue in the browser: by question, with the numbers beside their true counts.

QUEUE is a folder with one folder a request. The page is served to this machine alone, and to whoever opens the printed
address first. Decisions are kept at every step, apart from those of the other checker; the review is sealed with your
key for exactly the files and questions that were shown. Ctrl-C ends the desk; drafts stay.

Without a browser: `sacro-deltab review`, which asks in the terminal or takes a file of answers, and `review status`.

Example:

    sacro-deltab desk queue --key checker1.pem --trust trust.json --ledger budget.db
"""


def register(app: typer.Typer) -> None:
    """Add `desk`."""
    app.command("desk", help=_HELP)(desk)


def desk(
    queue: Annotated[Path, typer.Argument(metavar="QUEUE", help="Folder of requests.", show_default=False)],
    key: Annotated[Path, typer.Option("--key", help="The checker's private key.", show_default=False)],
    trust: Annotated[
        Path | None, typer.Option("--trust", help="Trust file. Default: trust.json beside the key.")
    ] = None,
    passphrase_file: Annotated[Path | None, typer.Option("--passphrase-file", help="File with the passphrase.")] = None,
    rules: Annotated[str | None, typer.Option("--rules", help="Rule set: a name or a folder.")] = None,
    layer: Annotated[str | None, typer.Option("--layer", help="Top layer on the rules.")] = None,
    ledger: Annotated[str | None, typer.Option("--ledger", help="The privacy ledger.")] = None,
    attest: Annotated[Path | None, typer.Option("--attest", help="What TRE staff attest.")] = None,
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port; 0: a free one.")] = 0,
) -> None:
    """Serve the desk until it is interrupted."""
    from ..certificate.keys import load_key, read_passphrase, refuse_key_inside  # late: a command loads what it needs
    from ..desk.desk import Desk
    from ..desk.queue import Queue
    from ..desk.server import DeskServer
    from ..ledger.trust import load_trust

    if not queue.is_dir():
        raise InputError("there is no such folder", path=queue, next_step="Name the folder that holds the requests.")
    refuse_key_inside(key, queue)
    found = find_trust(trust, key, queue)
    opened = load_key(key, read_passphrase(passphrase_file, prompt_passphrase))
    options: dict[str, Any] = {
        "ruleset": rules, "profile": layer, "ledger": ledger, "facts_file": attest, "trust": found
    }  # fmt: skip
    requests = Queue(queue, options, lambda line: typer.echo(line, err=True))
    at = Desk(requests, opened, load_trust(found))
    with at.drafts.held(), DeskServer(at, port) as server:
        typer.echo(f"{len(requests.names)} requests. Open once: {server.url}")
        requests.start()
        try:
            with contextlib.suppress(KeyboardInterrupt):
                server.serve_forever()
        finally:
            requests.stop()
    typer.echo("The desk is closed; drafts are kept.", err=True)
