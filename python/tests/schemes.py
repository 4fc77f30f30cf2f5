"""Policies that several tests use."""

from __future__ import annotations

from typing import Any

import isotherm as iso
import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[Any]


class HostGc(iso.Placement):
    """The built-in `host_gc`."""

    streams = 2
    gc_stream = 1

    def host(self, lpns: Ints, last_writes: Ints, now: Ints) -> int:
        return 0


class Epoch(iso.Placement):
    """The built-in `epoch`."""

    streams = 2
    gc_stream = 0

    def begin(self, logical_pages: int) -> None:
        self.length = round(logical_pages * 0.5)

    def host(self, lpns: Ints, last_writes: Ints, now: Ints) -> Ints:
        return np.asarray((last_writes >= 0) & (now - last_writes <= self.length))


class ByAge(iso.Placement):
    """Copies by their age, so that the pages of victims are asked for."""

    streams = 3
    gc_streams = 2

    def begin(self, logical_pages: int) -> None:
        self.pages = logical_pages

    def host(self, lpns: Ints, last_writes: Ints, now: Ints) -> Ints:
        return np.zeros(len(lpns), np.int64)

    def copies(self, lpns: Ints, last_writes: Ints, now: int, block: iso.Block) -> Ints:
        assert block.stream < 3
        return np.asarray(1 + (now - last_writes > self.pages))


class Emptiest(iso.VictimPolicy):
    """Greedy, some blocks at a time."""

    many = 8

    def rank(self, blocks: iso.Blocks, now: int) -> Ints:
        return blocks.block[np.argsort(blocks.valid, kind="stable")[: self.many]]
