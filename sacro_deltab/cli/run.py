"""`sacro-deltab run` and `sacro-deltab demo`."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from ..base.errors import InputError
from ..run.plan import Plan
from .progress import say

_RUN = """Train, noise, judge, and write the folder that an output checker opens.

Works with --ages, --features and --out alone: what a missing choice makes impossible is named, not guessed. Upstream
deltab's names are accepted where they mean the same (--train-ages, --train-features, --feature-num, --feature-nans,
--feature-proportion, --feature-var, --kaiser-guttmann, --predict-model).

Exit code, as `check` on the folder: 0 meets the policy, 1 at least one fail, 3 review needed, 2 usage or unreadable
input (then no folder is left).

Examples:

\b
    sacro-deltab run --ages ages.csv --features idps.csv --out outputs

\b
    sacro-deltab run --ages cohort.csv --features cohort.csv --id-column participant_id --out outputs \\
        --by diagnosis --by 'site*sex' --age-bands 10 --basis basis.json --epsilon 1 --cohort dpuk-site-a
"""
_STATISTICS = ("mean", "sd", "quantiles", "group_means", "counts", "features")
_METHODS = ("auto", "moments", "gradient")
_RELATIONS = ("zero_out_N_public", "add_remove", "replace_one")
_MODELS = ("simple", "unbiased", "unbiased_quadratic", "alternate", "alternate_quadratic")
_DEMO = """The whole main job on an embedded simulated cohort: what leaves, what does not, and why.

Nobody in it is real. The folder, the budget and the files a TRE would supply are written; the exit code is 0.

Example:

    sacro-deltab demo --out outputs
"""


def register(app: typer.Typer) -> None:
    """Add `run` and `demo` to the command line."""
    app.command("run", help=_RUN)(run)
    app.command("demo", help=_DEMO)(demo)


_Features = Annotated[
    Path | None, typer.Option("--features", "--train-features", help="IDPs, one row a person, one column each.")
]
_Deltas = Annotated[
    Path | None, typer.Option("--deltas", help="Deltas made elsewhere (predict, R, brainageR), one row a person.")
]
_TrainWhere = Annotated[
    str | None,
    typer.Option("--train-where", help="COLUMN=LABEL[,LABEL]: train on these people; deltas and tables are of all."),
]
_Recipe = Annotated[
    str,
    typer.Option(
        "--recipe", help="private, documents (their own noise, no guarantee) or documents-pca (their DP-PCA too)."
    ),
]
_EpsilonMean = Annotated[
    float | None, typer.Option("--epsilon-mean", help="Release the mean delta with Laplace noise at this ε.")
]
_Noised = Annotated[
    list[str] | None,
    typer.Option("--noised", help="STATISTIC=ε: sd, quantiles, group_means, counts, features or mean; repeat."),
]
_Labels = Annotated[
    list[str] | None,
    typer.Option("--labels", help="COLUMN=LABEL,LABEL: groups of noised tables, named beforehand; repeat."),
]
# How J is chosen, and gaps are filled, where nothing is noised.
_Nans = Annotated[
    str | None, typer.Option("--feature-nans", help="median or remove: missing features where nothing is noised.")
]
_Proportion = Annotated[
    float | None, typer.Option("--feature-proportion", help="J as a share of the features; not with --epsilon.")
]
_InSample = Annotated[
    bool, typer.Option("--in-sample", help="Deltas of a model fitted to the very people; not with --epsilon.")
]
_Variance = Annotated[
    float | None, typer.Option("--feature-var", help="J that explains this share of variance; not with --epsilon.")
]
_Kaiser = Annotated[
    bool, typer.Option("--kaiser-guttmann", "--kaiser-guttman", help="J by that criterion; not with --epsilon.")
]


def run(
    out: Annotated[Path, typer.Option("--out", help="Folder to write; must not exist.")],
    ages: Annotated[Path | None, typer.Option("--ages", "--train-ages", help="Ages in years, one a row.")] = None,
    features: _Features = None,
    deltas: _Deltas = None,
    confounds: Annotated[
        Path | None, typer.Option("--confounds", "--conf", help="Confounds, one row a person.")
    ] = None,
    groups: Annotated[Path | None, typer.Option("--groups", help="Group labels, one row a person.")] = None,
    by: Annotated[list[str] | None, typer.Option("--by", help="Group column; repeat; a*b crosses two.")] = None,
    train_where: _TrainWhere = None,
    age_bands: Annotated[str | None, typer.Option("--age-bands", help="Widths in years, e.g. 5,10.")] = None,
    id_column: Annotated[str | None, typer.Option("--id-column", help="Column of person ids.")] = None,
    age_column: Annotated[str, typer.Option("--age-column", help="Column of ages in a combined table.")] = "age",
    ignore: Annotated[list[str] | None, typer.Option("--ignore", help="Column to leave out; repeat.")] = None,
    rows_per_person: Annotated[int | None, typer.Option("--rows-per-person", help="Cap on repeated persons.")] = None,
    basis: Annotated[Path | None, typer.Option("--basis", help="Shared basis (sacro-deltab basis).")] = None,
    bounds: Annotated[Path | None, typer.Option("--bounds", help="Public bounds file.")] = None,
    epsilon: Annotated[float | None, typer.Option("--epsilon", help="ε of the private training.")] = None,
    delta_dp: Annotated[float | None, typer.Option("--delta-dp", help="δ of the private training.")] = None,
    n_components: Annotated[
        int | None, typer.Option("--n-components", "--feature-num", help="Components J, fixed beforehand.")
    ] = None,
    feature_nans: _Nans = None,
    in_sample: _InSample = False,
    feature_proportion: _Proportion = None,
    feature_variance: _Variance = None,
    kaiser_guttman: _Kaiser = False,
    adjacency: Annotated[str, typer.Option("--adjacency", help="Neighbouring relation.")] = "zero_out_N_public",
    method: Annotated[str, typer.Option("--method", help="auto, moments or gradient.")] = "auto",
    recipe: _Recipe = "private",
    model: Annotated[str, typer.Option("--model", "--predict-model", help="Delta model.")] = "unbiased_quadratic",
    epsilon_mean: _EpsilonMean = None,
    noised: _Noised = None,
    labels: _Labels = None,
    plots: Annotated[bool, typer.Option("--plots", help="Add a PNG of every table that may be shown.")] = False,
    moments: Annotated[bool, typer.Option("--moments", help="Also ask for the noised moments, for pooling.")] = False,
    rules: Annotated[str | None, typer.Option("--rules", help="Rule set: a name or a folder.")] = None,
    profile: Annotated[str | None, typer.Option("--layer", "--profile", help="Top layer on the rules.")] = None,
    declare: Annotated[Path | None, typer.Option("--declare", help="What the researcher declares (JSON).")] = None,
    attest: Annotated[Path | None, typer.Option("--attest", help="What TRE staff attest (JSON).")] = None,
    ledger: Annotated[str, typer.Option("--ledger", help="The privacy budget.")] = "budget.db",
    key: Annotated[
        Path | None, typer.Option("--key", help="The ledger's private key. Default: FILE.key beside it.")
    ] = None,
    trust: Annotated[Path | None, typer.Option("--trust", help="The TRE's trust file.")] = None,
    cohort: Annotated[str, typer.Option("--cohort", help="The TRE's id of these people.")] = "cohort",
    job: Annotated[Path | None, typer.Option("--job", help="Job file; the rest is this node's own.")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Judge what needs no noise; spend nothing, write nothing.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Report as JSON on stdout.")] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="A session folder of that name is set aside, as NAME.1.")
    ] = False,
    spend_anyway: Annotated[
        bool, typer.Option("--spend-anyway", help="Spend ε although nothing could leave yet.")
    ] = False,
    resume: Annotated[
        Path | None, typer.Option("--resume", help="Working folder of a run that paid: judge its results again.")
    ] = None,
) -> None:
    """See _RUN."""
    _check_inputs(ages, features, deltas, trains=features is not None or epsilon is not None or job is not None)
    _check_numbers({"--epsilon": epsilon, "--epsilon-mean": epsilon_mean}, delta_dp, n_components)
    _check_words({"--method": (method, _METHODS), "--adjacency": (adjacency, _RELATIONS), "--model": (model, _MODELS)})
    _check_words({"--recipe": (recipe, ("private", "documents", "documents-pca"))})
    _check_words({"--feature-nans": (feature_nans or "median", ("median", "remove"))})
    _check_columns(by or ())
    others = _components(n_components, feature_proportion, feature_variance, kaiser_guttman)
    plan = Plan(
        out=out, ages=ages, features=features, deltas=deltas, confounds=confounds, groups=groups, by=tuple(by or ()),
        train_where=_part(train_where), age_bands=_widths(age_bands), id_column=id_column, age_column=age_column,
        ignore=tuple(ignore or ()),
        rows_per_person=rows_per_person, basis=basis, bounds=bounds, epsilon=epsilon, delta_dp=delta_dp,
        n_components=n_components, feature_nans=feature_nans, in_sample=in_sample, components=others,
        adjacency=adjacency, method=method, recipe=recipe, model=model, epsilon_mean=epsilon_mean,
        noised=_noised(noised or ()),
        labels=tuple(_part(text, "--labels") for text in labels or ()), plots=plots,
        moments=moments, rules=rules, profile=profile, declare=declare, attest=attest, ledger=ledger,
        trust=trust, cohort=cohort, spend_anyway=spend_anyway, resume=resume, overwrite=overwrite,
    )  # fmt: skip
    with _ledger_key(key):
        if dry_run:
            _rehearse(plan, as_json)
        else:
            _carry_out(plan, job, as_json)


@contextlib.contextmanager
def _ledger_key(key: Path | None) -> Iterator[None]:
    """The key where a ledger looks for it, for this command only."""
    name = "SACRO_DELTAB_LEDGER_KEY"
    before = os.environ.get(name)
    if key is not None:
        os.environ[name] = str(key)
    try:
        yield
    finally:
        if key is not None:
            os.environ.pop(name)
            os.environ |= {} if before is None else {name: before}


def _carry_out(plan: Plan, job: Path | None, as_json: bool) -> NoReturn:
    from ..run.pipeline import run as run_plan  # late: a command loads what it needs
    from ..run.telling import account

    if job is not None:
        from ..run.job_run import run_job  # late: a command loads what it needs

        outcome = run_job(job, plan, say)
    else:
        outcome = run_plan(plan, say)
    _print(outcome, account(outcome), as_json)
    raise typer.Exit(outcome.exit_code)


def _check_inputs(ages: Path | None, features: Path | None, deltas: Path | None, *, trains: bool) -> None:
    if ages is None or (features is None and deltas is None):
        missing = "--ages" if ages is None else "--features"
        raise InputError(f"{missing} was not given", next_step="Both files are needed; one file may serve for both.")
    if deltas is not None and trains:
        raise InputError(
            "deltas made elsewhere and a training exclude each other",
            place="--deltas",
            next_step="Leave out --features, --epsilon and --job.",
        )


def _check_columns(by: Sequence[str]) -> None:
    if any(not part.strip() for name in by for part in name.split("*")):
        raise InputError("a column has no name", place="--by", next_step="For example --by sex or --by 'site*sex'.")


def _noised(asked: Sequence[str]) -> tuple[tuple[str, float], ...]:
    """Statistics with their ε."""
    found = []
    for text in asked:
        name, _, number = text.partition("=")
        _check_words({"--noised": (name.strip(), _STATISTICS)})
        try:
            epsilon = float(number)
        except ValueError:
            raise InputError("this is no ε", place="--noised", next_step="For example --noised sd=0.5.") from None
        _check_numbers({"--noised": epsilon}, None, None)
        found.append((name.strip(), epsilon))
    return tuple(found)


def _part(text: str | None, option: str = "--train-where") -> tuple[str, ...]:
    """A column and labels of it."""
    column, _, labels = (text or "").partition("=")
    found = (column.strip(), *(label.strip() for label in labels.split(",")))
    if text is not None and not all(found):
        raise InputError("this is no part", place=option, next_step=f"For example {option} diagnosis=HC.")
    return () if text is None else found


def _components(
    fixed: int | None, proportion: float | None, variance: float | None, kaiser_guttman: bool
) -> dict[str, Any]:
    """How J is chosen where it is not fixed."""
    choice = {
        "feature_proportion": proportion,
        "feature_variance": variance,
        "kaiser_guttman": kaiser_guttman or None,
    }
    others = {name: value for name, value in choice.items() if value is not None}
    if len(others) + (fixed is not None) > 1:
        raise InputError(
            "J is chosen in more than one way", place="--n-components", next_step="Keep one of the options."
        )
    return others


def _rehearse(plan: Any, as_json: bool) -> None:

    from ..run.rehearsing import rehearse  # numpy and ACRO, for this command only

    found = rehearse(plan, say)
    typer.echo(json.dumps(found.to_json(), ensure_ascii=False, allow_nan=False) if as_json else "\n".join(found.said))


def demo(
    out: Annotated[Path, typer.Option("--out", help="Folder to write; must not exist.")] = Path("outputs"),
    ledger: Annotated[str, typer.Option("--ledger", help="The privacy budget.")] = "budget.db",
    declare: Annotated[
        Path | None, typer.Option("--declare", help="Declaration to use in the place of the simulated one.")
    ] = None,
    attest: Annotated[
        Path | None, typer.Option("--attest", help="Attestation to use in the place of the simulated one.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Report as JSON on stdout.")] = False,
) -> None:
    """See _DEMO."""
    from ..run.demo import run_demo, story  # late: a command loads what it needs

    outcome = run_demo(out, ledger, say, declare=declare, attest=attest)
    _print(outcome, story(outcome), as_json)


def _check_numbers(epsilons: dict[str, float | None], delta_dp: float | None, n_components: int | None) -> None:
    """Refuse what no release can be made with before anything is read."""
    for option, value in epsilons.items():
        if value is not None and not 0 < value < float("inf"):
            raise InputError("ε must be a number above 0", place=option, next_step=f"For example {option} 1.")
    if delta_dp is not None and not 0 < delta_dp < 1:
        raise InputError("δ must lie between 0 and 1", place="--delta-dp", next_step="Leave it out for the default.")
    if n_components is not None and n_components < 1:
        raise InputError(
            "at least one component is needed", place="--n-components", next_step="For example --n-components 10."
        )


def _check_words(choices: dict[str, tuple[str, tuple[str, ...]]]) -> None:
    for option, (word, known) in choices.items():
        if word not in known:
            raise InputError(f"{word!r} is not known", place=option, next_step=f"Use one of {', '.join(known)}.")


def _widths(text: str | None) -> tuple[float, ...]:
    if text is None:
        return ()
    try:
        widths = tuple(float(part) for part in text.split(","))
    except ValueError:
        raise InputError("--age-bands is not a list of widths", next_step="For example --age-bands 5,10.") from None
    if any(not 0 < width < 200 for width in widths):
        raise InputError("an age band must be wider than 0 years", next_step="For example --age-bands 5,10.")
    return widths


def _print(outcome: Any, lines: list[str], as_json: bool) -> None:

    if not as_json:
        typer.echo("\n".join(lines))
        return
    session = outcome.session
    data = {
        "schema": "sacro_deltab/run/1",
        "folder": str(outcome.folder),
        "verdict": outcome.report.verdict,
        "rule_set": {"id": session.ruleset.id, "version": session.ruleset.version, "sha256": session.ruleset.sha256},
        "outputs": [
            {
                "name": e.name,
                "type": e.type,
                "status": e.status,
                "kept_inside": e.kept_inside,
                "files": list(e.files),
                "reasons": list(e.reasons),
            }
            for e in session.entries
        ],
        "budget": session.budget.totals_json(),
        "not_done": list(outcome.impossible),
    }
    typer.echo(json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False))
