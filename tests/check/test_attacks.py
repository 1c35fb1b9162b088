"""Attempts to get per-person values past the checker in files that look like honest outputs.

Facts are attested for each of them: what must stop them is what the file itself holds.
"""

from __future__ import annotations

import base64
import json
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from checking import PLAIN, check, codes, group_document, group_facts, mean_document, texts, write

from sacro_deltab.judging.schema import document_errors
from sacro_deltab.outputs import Column, OutputDocument

RNG = np.random.default_rng(8)
AGES = RNG.integers(45, 80, 412).astype(float)
DELTAS = RNG.normal(0, 4, 412)
MEAN = {"output_type": "delta_mean", "facts": PLAIN}


def vector(kind: str, labels: list[str], values: Any, **more: Any) -> OutputDocument:
    columns = (Column("name", "label"), Column("value", "value", more.pop("unit", "")))
    rows = tuple((a, b) for a, b in zip(labels, values, strict=True))
    return OutputDocument(name="vector", type=kind, title="Values", columns=columns, rows=rows, **more)


def facts(kind: str, **more: Any) -> dict[str, Any]:
    return {"output_type": kind, "facts": {**PLAIN, "acro.regression_check": "pass", "residual_dof": 300, **more}}


def judge(tmp_path: Path, document: OutputDocument, attested: dict[str, Any]) -> Any:
    assert not document_errors(json.loads(document.to_json())), "the attack must match the schema"
    return check(write(tmp_path / "vector.json", document), facts=attested)


ABOUT: dict[str, Any] = {
    "numbers": {"labels": AGES[:30].tolist()},
    "number words": {"labels": [str(a) for a in AGES[:12]] + [" ".join(str(a) for a in AGES[12:40])]},
    "base64": {"basis": base64.b64encode(struct.pack("60d", *DELTAS[:60])).decode()},
    "hex": {"basis": struct.pack("40d", *DELTAS[:40]).hex()},
    "many digests": {"labels": [" ".join(struct.pack("4d", *DELTAS[i : i + 4]).hex() for i in range(0, 40, 4))]},
    "many entries": {f"k{i}": float(AGES[i]) for i in range(40)},
    "nested": {"layout": {f"k{i}": float(AGES[i]) for i in range(40)}},
    "decimal words": {f"k{i}": f"at {DELTAS[i]:.3f}" for i in range(40)},
    "invisible": {"labels": ["fine" + "".join(chr(0xE0020 + int(a)) for a in AGES[:20])]},
    "wide digits": {"labels": ["".join(chr(0xFF10 + int(c)) for c in "4752")]},
    "identifier": {"labels": ["without sub-0042"]},
}


@pytest.mark.parametrize("name", ABOUT)
def test_notes_carry_no_data(tmp_path: Path, name: str) -> None:
    report = judge(tmp_path, mean_document(about=ABOUT[name]), MEAN)
    assert report.exit_code == 1, texts(report)


TITLES = [
    "Deltas " + " ".join(f"{d:.1f}" for d in DELTAS[:20]),
    "Mean of 1.234 2.345 3.456 4.567",
    "sub-003 has the largest delta",
    "Mean\u200bdelta",
    "Mean \u0664\u0662",
]


@pytest.mark.parametrize("title", TITLES)
def test_titles_carry_no_data(tmp_path: Path, title: str) -> None:
    report = judge(tmp_path, mean_document(title=title), MEAN)
    assert report.exit_code == 1, texts(report)


def test_text_in_value_cells(tmp_path: Path) -> None:
    for cell in ("fifty-two", "52y", "52 47 25", "below 0.001 52", "0x34", "\uff15\uff12", "52%"):
        report = judge(tmp_path, vector("delta_mean", ["mean"], [cell], unit="years"), MEAN)
        assert report.exit_code == 1, cell


def test_every_persons_delta_as_a_quantile(tmp_path: Path) -> None:
    labels = [str(round(100 * (i + 0.5) / 412, 3)) for i in range(412)]
    document = vector("delta_quantiles", labels, np.round(np.sort(DELTAS), 1).tolist(), unit="years")
    report = judge(tmp_path, document, facts("delta_quantiles"))
    assert "check/too-many-quantiles" in codes(report)
    few = vector("delta_quantiles", ["49", "50", "51"], [0.1, 0.2, 0.3], unit="years")
    assert "check/close-quantiles" in codes(judge(tmp_path, few, facts("delta_quantiles")))


def test_people_as_features_of_a_summary(tmp_path: Path) -> None:
    columns = (Column("feature", "label"), *(Column(f"s{i}", "value") for i in range(100)))
    rows = tuple((f"IDP {j}", *(round(float(v), 2) for v in RNG.normal(size=100))) for j in range(12))
    document = OutputDocument("vector", "idp_summary", "Summary", columns, rows)
    report = judge(tmp_path, document, facts("idp_summary", **{"idp.largest_share": 0.01}))
    assert "check/too-many-columns" in codes(report)


@pytest.mark.parametrize("length", [412, 400, 300])
def test_ages_as_correlations(tmp_path: Path, length: int) -> None:
    document = vector("correlation", [f"IDP {i}" for i in range(length)], (AGES[:length] / 100).tolist())
    report = judge(tmp_path, document, facts("correlation"))
    assert report.exit_code in (1, 3), texts(report)


@pytest.mark.parametrize(
    ("kind", "values"),
    [("correlation", [0.2, 3.1]), ("p_value", [-0.2]), ("delta_sd", [-1.0]), ("delta_quantiles", [2.0, 1.0])],
)
def test_numbers_that_no_such_statistic_can_be(tmp_path: Path, kind: str, values: list[float]) -> None:
    labels = ["25", "75"][: len(values)] if kind == "delta_quantiles" else [f"IDP {i}" for i in range(len(values))]
    report = judge(tmp_path, vector(kind, labels, values, unit="years"), facts(kind, value=values[0]))
    assert "check/impossible-value" in codes(report)
    assert report.exit_code == 1


def test_numbers_in_names_that_jump_up_and_down(tmp_path: Path) -> None:
    hidden = [f"vol_{i}_{int(AGES[i])}" for i in range(60)]
    report = judge(tmp_path, vector("correlation", hidden, [0.1] * 60), facts("correlation"))
    assert "check/numbers-in-labels" in codes(report)
    assert report.exit_code == 3
    for honest in (
        [f"IDP {i}" for i in range(60)],
        sorted(f"IDP {i}" for i in range(60)),
        [f"edge_{i}_{j}" for i in range(12) for j in range(i + 1, 12)],
        [f"{side}_net{n}_roi{r}" for side in ("lh", "rh") for n in range(5) for r in range(1, 9)],
    ):
        report = judge(tmp_path, vector("correlation", honest, [0.1] * len(honest)), facts("correlation"))
        assert report.exit_code == 0, texts(report)


def test_ages_as_group_means(tmp_path: Path) -> None:
    rows = {f"group {i}": (25, float(AGES[i])) for i in range(60)}
    report = judge(tmp_path, group_document(rows, name="vector"), group_facts(dict.fromkeys(rows, 25), n=412))
    assert "check/too-many-groups" in codes(report)


def test_counts_that_carry_digits(tmp_path: Path) -> None:
    rows = {"F": (524725, 0.1), "M": (616371, 0.2)}
    report = judge(tmp_path, group_document(rows, name="vector"), group_facts({"F": 524725, "M": 616371}, n=412))
    assert "check/count-beyond-n" in codes(report)


def test_ids_and_numbers_as_names(tmp_path: Path) -> None:
    for labels in ([f"sub-{i:04d}" for i in range(40)], [f"x{DELTAS[i]:.4f}" for i in range(40)]):
        report = judge(tmp_path, vector("correlation", labels, [0.1] * 40), facts("correlation"))
        assert report.exit_code == 1, texts(report)


@pytest.mark.parametrize(
    "edit",
    [
        lambda t: t.replace('"rows"', '"ages": [52],\n "rows"'),
        lambda t: t + " ",
        lambda t: t.replace("0.3", "0.30"),
        lambda t: t.replace("0.3", "3e-1"),
        lambda t: t.replace(": ", ":  ", 1),
        lambda t: t.replace('"Mean', '"\\u004dean'),
        lambda t: "\ufeff" + t,
        lambda t: t.replace('"about": {}', '"about": {"labels": "\\u200b"}'),
        lambda t: t.replace('"unit": "years"', '"unit": "52 47 25 61 63 55 71 48 49 66 70 58"'),
    ],
)
def test_the_same_document_written_otherwise(tmp_path: Path, edit: Any) -> None:
    path = write(tmp_path / "delta_mean.json", edit(mean_document().to_json()))
    assert check(path, facts=MEAN).exit_code == 1


@pytest.mark.parametrize(
    "text",
    [
        "statistic,value\nmean,0.3 \n",
        "statistic,value\nmean,0.3\n#52\n",
        "statistic,value\nmean,0.30\n",
        "statistic,value\r\nmean,0.3\r\n",
        "statistic,value\nmean,0.3\n\n\n",
        "statistic;value\nmean;0.3\n",
        "\ufeffstatistic,value\nmean,0.3\n",
        'statistic,value\n"mean",0.3\n',
        "statistic,value\nmean,\u0660.\u0663\n",
        "statistic,value,\nmean,0.3,\n",
        "statistic,value\nmean,0.3\nother,52\n",
    ],
)
def test_the_same_table_written_otherwise(tmp_path: Path, text: str) -> None:
    assert check(write(tmp_path / "delta_mean.csv", text), facts=MEAN).exit_code == 1


def test_the_cohorts_values_are_known_in_any_disguise(tmp_path: Path) -> None:
    cohort = tmp_path / "cohort.csv"
    cohort.write_text("age,delta\n" + "".join(f"{a},{d}\n" for a, d in zip(AGES, DELTAS, strict=True)))
    for values in (AGES * -3.7 + 11, np.sort(DELTAS), DELTAS[:60], RNG.permutation(DELTAS)[:200]):
        path = write(tmp_path / "numbers.json", {"b1": values.tolist()})
        assert "check/cohort-values" in codes(check(path, cohort=cohort)), values[:3]


def test_a_vector_split_over_files(tmp_path: Path) -> None:
    """Together they have one row for each person of the cohort."""
    cohort = tmp_path / "cohort.csv"
    cohort.write_text("age,delta\n" + "".join(f"{a},{d}\n" for a, d in zip(AGES, DELTAS, strict=True)))
    parts = [write(tmp_path / f"part{i}.txt", "\n".join(repr(float(d)) for d in DELTAS[i::4])) for i in range(4)]
    report = check(*parts, cohort=cohort)
    assert all("check/cohort-values" in codes(output) for output in report.outputs)


# --- pictures ---------------------------------------------------------------------------------------------------------


def chunk(mark: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + mark + body + struct.pack(">I", zlib.crc32(mark + body))


def png(before: bytes = b"", pixels: bytes | None = None, end: bytes = b"", after: bytes = b"") -> bytes:
    """A grey picture of 2 × 2 pixels with chunks put in."""
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", 2, 2, 8, 0, 0, 0, 0))
    body = zlib.compress(b"\0\1\2\0\3\4") if pixels is None else pixels
    return b"\x89PNG\r\n\x1a\n" + head + before + chunk(b"IDAT", body) + after + chunk(b"IEND", end)


SOFTWARE = b"Software\0Matplotlib version3.10.0, https://matplotlib.org/"
HONEST_PICTURES = {
    "bare": png(),
    "matplotlib": png(chunk(b"tEXt", SOFTWARE) + chunk(b"pHYs", bytes(9)) + chunk(b"gAMA", bytes(4))),
}
PICTURES = {
    "palette without colours": png(chunk(b"PLTE", bytes(range(255)))),
    "transparency too long": png(chunk(b"tRNS", bytes(range(200)))),
    "pixels too many": png(pixels=zlib.compress(b"\0\1\2\0\3\4" + DELTAS.tobytes())),
    "bytes after the pixels": png(pixels=zlib.compress(b"\0\1\2\0\3\4") + DELTAS.tobytes()),
    "text as software": png(chunk(b"tEXt", SOFTWARE + b" 52,47,25,61")),
    "a second header": png(chunk(b"IHDR", struct.pack(">IIBBBBB", 52, 47, 8, 0, 0, 0, 0))),
    "a long pHYs": png(chunk(b"pHYs", AGES.astype("u1").tobytes())),
    "many pHYs": png(b"".join(chunk(b"pHYs", struct.pack(">IIB", int(a), int(a), 1)) for a in AGES)),
    "bytes in the end": png(end=b"52 47 25"),
    "pixels twice": png(after=chunk(b"gAMA", bytes(4)) + chunk(b"IDAT", b"52 47 25")),
    "filters that are none": png(pixels=zlib.compress(b"\x34\1\2\x2f\3\4")),
    "a private chunk": png(chunk(b"agEs", AGES.tobytes())),
}
PLOT = {"output_type": "plot", "facts": {**PLAIN, "plot.source_status": "pass", "plot.per_subject_marks": False}}


@pytest.mark.parametrize("name", PICTURES)
def test_pictures_that_carry_more_than_pixels(tmp_path: Path, name: str) -> None:
    report = check(write(tmp_path / "plot.png", PICTURES[name]), facts=PLOT)
    assert report.exit_code == 1, texts(report)


@pytest.mark.parametrize("name", HONEST_PICTURES)
def test_a_plain_picture_is_for_a_person(tmp_path: Path, name: str) -> None:
    report = check(write(tmp_path / "plot.png", HONEST_PICTURES[name]), facts=PLOT)
    assert report.exit_code == 3, texts(report)


def test_what_matplotlib_writes_is_plain(tmp_path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure()
    figure.subplots().bar([1, 2], [3, 4])
    figure.savefig(tmp_path / "plot.png")
    assert check(tmp_path / "plot.png", facts=PLOT).exit_code == 3
