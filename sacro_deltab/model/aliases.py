"""One feature under many names: FreeSurfer 5 to 7, the Desikan names of ENIGMA, the fields of UK Biobank.

`bare_name` brings a name to one plain form; two names with the same form are the same feature. Nothing is guessed
beyond these rules: a name that they do not know stands for itself, in lower case.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .base import ModelInputError

_REGIONS = (
    "bankssts", "caudalanteriorcingulate", "caudalmiddlefrontal", "cuneus", "entorhinal", "fusiform",
    "inferiorparietal", "inferiortemporal", "isthmuscingulate", "lateraloccipital", "lateralorbitofrontal", "lingual",
    "medialorbitofrontal", "middletemporal", "parahippocampal", "paracentral", "parsopercularis", "parsorbitalis",
    "parstriangularis", "pericalcarine", "postcentral", "posteriorcingulate", "precentral", "precuneus",
    "rostralanteriorcingulate", "rostralmiddlefrontal", "superiorfrontal", "superiorparietal", "superiortemporal",
    "supramarginal", "frontalpole", "transversetemporal", "insula",
)  # fmt: skip
_SUBCORTICAL = ("thalamus", "caudate", "putamen", "pallidum", "hippocampus", "amygdala", "accumbens")
_MEASURES = {
    "thickness": "thickness", "thickavg": "thickness", "meanthickness": "thickness",
    "area": "area", "surfavg": "area", "surfarea": "area",
    "volume": "volume", "grayvol": "volume", "vol": "volume",
}  # fmt: skip
_SHORT = {
    "thal": "thalamus", "caud": "caudate", "put": "putamen", "pal": "pallidum", "hippo": "hippocampus",
    "amyg": "amygdala", "accumb": "accumbens", "latvent": "lateral_ventricle",
}  # fmt: skip
_WORDS = {
    "thalamus_proper": "thalamus", "accumbens_area": "accumbens", "lat_vent": "lateral_ventricle",
    "inf_lat_vent": "inferior_lateral_ventricle",
}  # fmt: skip
_HEMISPHERE = re.compile(r"^(lh|rh|l|r|left|right)_(.+)$")
_FIELD = re.compile(r"^(?:f_|p|bl_|ukb_)?(2\d{4})(?:_?i?\d+)?(?:_\d+)?$")


def _fields() -> dict[int, str]:
    """UK Biobank's numbers of its Desikan (white surface) and subcortical fields; each block is in alphabetical order
    of the atlas, the whole hemisphere first for area and thickness."""
    out: dict[int, str] = {}
    blocks = (
        ("lh", "area", 26722), ("lh", "thickness", 26756), ("lh", "volume", 26789),
        ("rh", "area", 26823), ("rh", "thickness", 26857), ("rh", "volume", 26890),
    )  # fmt: skip
    for side, measure, first in blocks:
        out |= {first + k: f"{side}_{region}_{measure}" for k, region in enumerate(_REGIONS)}
    for side, mean, area in (("lh", 26755, 26721), ("rh", 26856, 26822)):
        out |= {mean: f"{side}_mean_thickness", area: f"{side}_total_area"}
    for side, first in (("lh", 26558), ("rh", 26589)):
        out |= {first + k: f"{side}_{region}_volume" for k, region in enumerate(_SUBCORTICAL)}
    return out


_UKB = _fields()


def bare_name(name: str) -> str:
    """The plain form of a feature's name: `L_insula_thickavg` and `26788-2.0` are `lh_insula_thickness`."""
    text = re.sub(r"[\s.\-]+", "_", name.strip().lower().replace("&", "_and_"))
    text = re.sub(r"_+", "_", text).strip("_")
    field = _FIELD.match(text)
    if field and int(field.group(1)) in _UKB:
        return _UKB[int(field.group(1))]
    for short, word in _SHORT.items():
        if text in (f"l{short}", f"r{short}"):
            return f"{text[0]}h_{word}_volume"
    text = text.replace("_aparc_", "_").replace("_a2009s_", "_")
    found = _HEMISPHERE.match(text)
    if found is None:
        return text
    side, rest = f"{found.group(1)[0]}h", found.group(2)
    stem, _, last = rest.rpartition("_")
    measure = _MEASURES.get(last) if stem and rest not in _WORDS else None
    region = _WORDS.get(stem if measure else rest, stem if measure else rest)
    if measure is None and region in (*_SUBCORTICAL, "lateral_ventricle", "inferior_lateral_ventricle"):
        measure = "volume"  # aseg's tables name the structure alone
    return f"{side}_{region}_{measure}" if measure else f"{side}_{region}"


@dataclass(frozen=True)
class Matched:
    """Which given column stands for which wanted feature. Holds names only."""

    columns: tuple[str | None, ...]  # one for each wanted feature; None where the table has none
    renamed: tuple[tuple[str, str], ...]  # (given, wanted) where the names differ

    @property
    def found(self) -> int:
        """Wanted features that the table has."""
        return sum(column is not None for column in self.columns)


def match_names(wanted: Sequence[str], given: Iterable[str], *, aliases: bool = True) -> Matched:
    """Find each wanted feature among the given columns: by its name, else by its plain form.

    Raises
    ------
    ModelInputError
        Two columns, or two wanted features, are one feature under two names.
    """
    names = list(given)
    exact, columns = set(names), []
    plain: dict[str, list[str]] = {}
    for name in names if aliases else ():
        plain.setdefault(bare_name(name), []).append(name)
    taken: dict[str, str] = {}
    renamed = []
    for feature in wanted:
        others = plain.get(bare_name(feature), [])
        if feature not in exact and len(others) > 1:
            raise ModelInputError(
                f"{others[0]!r} and {others[1]!r} are both the feature {feature!r} under another name.",
                next_step="Drop one of the two columns, or rename the right one.",
            )
        column = feature if feature in exact else others[0] if others else None
        if column is not None and column in taken:
            raise ModelInputError(
                f"The column {column!r} would stand for both {taken[column]!r} and {feature!r}.",
                next_step="Rename the columns as the model names its features.",
            )
        if column is not None:
            taken[column] = feature
            if column != feature:
                renamed.append((column, feature))
        columns.append(column)
    return Matched(tuple(columns), tuple(renamed))
