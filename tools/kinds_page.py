"""Write `docs/kinds.md` from the files of `sacro_deltab/kinds/` and the rule set's vocabulary."""

from __future__ import annotations

import inspect
from pathlib import Path

from sacro_deltab.kinds.kind import Kind
from sacro_deltab.kinds.registry import KINDS
from sacro_deltab.rules import load_base

PAGE = Path(__file__).resolve().parents[1] / "docs" / "kinds.md"
HEAD = """\
# Kinds of output

One file of `sacro_deltab/kinds/` a kind, or a family that is one truth; `python tools/kinds_page.py` makes this page of
these files and the vocabulary of the rule set. `session.release(KIND, ...)` asks for any kind with arguments below;
those with a method of their own (`release_mean`, ...) are the same.
What may leave of each is for the rules: `sacro-deltab rules explain KIND`.

To add one: a file here, its entry in the vocabulary (`ruleset.yaml`), and its name in the rules that round it. Then
`check`, the attack, the schema of documents, plans and this page know it. `kinds/cv_mae.py` was added so.

`check --cohort` measures numbers again by code of its own; of weights, the facts about the people they were trained on.
Of kinds without a word there it asks a person.

```python
import numpy as np, pandas as pd, tempfile
from pathlib import Path
from sacro_deltab.run.pipeline import quiet_acro
from sacro_deltab.session.acro_session import DeltabSession

place, rng = Path(tempfile.mkdtemp()), np.random.default_rng(1)
age = rng.uniform(45, 85, 300).round(1)
X = pd.DataFrame({f"thickness_{i}": rng.normal(0, 1, 300) - 0.05 * age for i in range(4)})
session = DeltabSession(
    quiet_acro(),
    cohort="site-a",
    people=[f"P{i}" for i in range(300)],
    ledger=place / "budget.db",
    journal=place / "journal",
    declare={
        "schema": "sacro_deltab/declare/1",
        "role": "researcher",
        "by": "A. N. Other",
        "date": "2026-11-30",
        "facts": {"output.declared": True},
    },
)
(entry,) = session.release("cv_mae", X, age, folds=5)
assert entry.type == "cv_mae"
assert entry.status == "review"  # nobody has attested anything yet: `print(entry.explain())`
```
"""


def arguments(kind: Kind) -> str:
    """What `session.release` takes after the kind, without the title and the name."""
    if kind.make is None:
        return ""
    own = list(inspect.signature(kind.make).parameters.values())[1:]
    return ", ".join(
        p.name if p.default is inspect.Parameter.empty else f"{p.name}={p.default!r}"
        for p in own
        if p.name not in ("title", "name")
    )


def page() -> str:
    """The page's text."""
    outputs = load_base().outputs
    classes = list(dict.fromkeys(spec.cls for spec in outputs.values()))
    lines = [HEAD]
    for cls in classes:
        lines += [f"## {cls.replace('_', ' ')}", "", "| kind | what it is | arguments | `check --cohort` |"]
        lines.append("|---|---|---|---|")
        for name, spec in outputs.items():
            kind = KINDS[name]
            if spec.cls == cls:
                asked = arguments(kind).replace("|", "\\|")
                again = "measures it again" if kind.again is not None or kind.of_groups else ""
                lines.append(f"| `{name}` | {kind.page} | {f'`{asked}`' if asked else ''} | {again} |")
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
