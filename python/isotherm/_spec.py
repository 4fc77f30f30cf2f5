"""Specifications: what is given by keywords, TOML or files, checked by the engine."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from isotherm import _native

if TYPE_CHECKING:
    from isotherm._policies import Placement, VictimPolicy


class _Keys(NamedTuple):
    """Keywords with the keys that they set: those of the device, and those of the replay."""

    device: dict[str, str]
    replay: dict[str, str]


@cache
def keywords() -> _Keys:
    """The keywords that set a key, each with its key in full."""
    found = []
    for rows in _native.keys():
        by_keyword: dict[str, str] = {}
        lasts = [key.rsplit(".", 1)[-1] for key, *_ in rows]
        for (key, option, *_), last in zip(rows, lasts, strict=True):
            by_keyword[key] = key
            if lasts.count(last) == 1:
                by_keyword.setdefault(last, key)
            if option is not None:
                by_keyword[option.replace("-", "_")] = key
        found.append(by_keyword)
    return _Keys(*found)


def text_of(keyword: str, value: object) -> str:
    """A value as the engine reads it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float, str)):
        return repr(float(value)) if isinstance(value, float) else str(value)
    if hasattr(value, "item"):
        return text_of(keyword, value.item())
    raise TypeError(f"{keyword}: a {type(value).__name__} is no value of a key; give a number, a text or a truth value")


class Given:
    """Keywords of a call, parted by what they are about."""

    def __init__(self, options: Mapping[str, object]) -> None:
        self.device: dict[str, object] = {}
        self.replay: list[str] = []
        self.policies: dict[str, object] = {}
        known = keywords()
        for keyword, value in options.items():
            if value is None:
                continue
            if keyword in known.device:
                self.device[known.device[keyword]] = value
            elif keyword in known.replay:
                self.replay.append(f"{known.replay[keyword]}={text_of(keyword, value)}")
            else:
                near = difflib.get_close_matches(keyword, [*known.device, *known.replay], 1)
                fix = f"did you mean {near[0]}?" if near else "isotherm.Spec.keys() has them all"
                raise _native.SpecError(f"{keyword}: unknown key; {fix}")

    def sets(self) -> list[str]:
        """What the device's keys are set to."""
        return [f"{key}={text_of(key, value)}" for key, value in self.device.items()]


class Spec:
    """A device: everything that determines what it does with requests.

    Parameters
    ----------
    toml : str or path, optional
        A specification in TOML, or the path of a file with one (it ends in ``.toml``). Keywords stand over it.
    **options
        Keys, by the name of their option on the command line (``op=0.07``, ``page_size="4KiB"``, ``victim="greedy"``), by the last
        part of their name where no other has it (``endurance=3000``), or in full
        (``**{"device.over_provisioning": 0.07}``). ``preset="..."`` takes the latencies of a kind of flash. `Spec.keys` has them
        all with their ranges and defaults. A `Placement` or `VictimPolicy` of your own goes wherever a name does.

    Raises
    ------
    SpecError
        An unknown key or a value out of range; the message says what would be right.

    Examples
    --------
    >>> import isotherm as iso
    >>> spec = iso.Spec(op="7%", victim="cost_benefit", placement="sepbit")
    >>> "cost_benefit" in spec.toml()
    True
    """

    def __init__(self, toml: str | os.PathLike[str] | None = None, /, **options: Any) -> None:
        text = "" if toml is None else _read(toml)
        given = Given(options)
        if given.replay:
            raise _native.SpecError(f"{given.replay[0].split('=')[0]}: a key of the replay; give it to run or compare")
        self.placement, self.victim = taken_policies(given)
        self._text = _native.spec_toml(text, given.sets())

    def toml(self) -> str:
        """The specification with every key in force, as TOML."""
        return self._text

    def replace(self, **options: Any) -> Spec:
        """The same specification with some keys changed."""
        return self._with(Given(options))

    def _with(self, given: Given) -> Spec:
        changed = object.__new__(Spec)
        placement, victim = taken_policies(given)
        sets = given.sets()
        changed.placement = placement or (None if "placement.name" in given.device else self.placement)
        changed.victim = victim or (None if "gc.victim" in given.device else self.victim)
        text = self._text
        if "device.spare" in given.device or "device.over_provisioning" in given.device:
            # One of the two says what the other does.
            lines = text.splitlines()
            text = "\n".join(line for line in lines if not line.startswith(("spare =", "over_provisioning =")))
        changed._text = _native.spec_toml(text, sets)
        return changed

    @staticmethod
    def keys() -> dict[str, str]:
        """Every key that can be set, with its kind, default and meaning."""
        return {key: f"{kind}, default {default}: {words}" for rows in _native.keys() for key, _, kind, default, words in rows}

    def __repr__(self) -> str:
        return f"<isotherm.Spec\n{self._text.strip()}\n>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Spec):
            return NotImplemented
        return (self._text, self.placement, self.victim) == (other._text, other.placement, other.victim)

    __hash__ = None  # type: ignore[assignment]


def taken_policies(
    given: Given,
) -> tuple[Placement | type[Placement] | None, VictimPolicy | type[VictimPolicy] | None]:
    """Takes policies of the program out of the keywords, and names them there."""
    from isotherm._policies import external_name, is_placement, is_victim

    placement, victim = given.device.get("placement.name"), given.device.get("gc.victim")
    own_placement: Any = placement if is_placement(placement) else None
    own_victim: Any = victim if is_victim(victim) else None
    if own_placement is not None:
        given.device["placement.name"] = external_name(own_placement)
    if own_victim is not None:
        given.device["gc.victim"] = external_name(own_victim)
    return own_placement, own_victim


def _read(toml: str | os.PathLike[str]) -> str:
    path = os.fspath(toml)
    if isinstance(toml, str) and ("\n" in path or not path.endswith(".toml")):
        return path
    with open(path, encoding="utf-8") as file:
        return file.read()


def spec_of(spec: Spec | str | os.PathLike[str] | None, given: Given) -> Spec:
    """The specification of a call: what is given over what is there."""
    base = spec if isinstance(spec, Spec) else Spec(spec) if spec is not None else Spec()
    return base._with(given) if given.device else base


def seed_of(seed: int) -> int:
    """A seed, checked."""
    if not 0 <= seed < 1 << 64:
        raise ValueError(f"seed: {seed} is out of range; give a whole number from 0 to {(1 << 64) - 1}")
    return seed


def names(kind: str) -> list[str]:
    """Names that can be given.

    Parameters
    ----------
    kind : {"placements", "victims", "ftls", "logs", "schemes"}
        What is listed.

    Returns
    -------
    list of str
        The names, as `Spec` takes them.
    """
    found = _native.names(kind)
    if found is None:
        raise ValueError(f"kind: {kind!r} is no list; choose from placements, victims, ftls, logs, schemes")
    return found
