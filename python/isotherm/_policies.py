"""Placements and victim policies of your own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from isotherm._results import Result

    Lpns = npt.NDArray[np.uint32]
    Times = npt.NDArray[np.int64]
    Streams = npt.NDArray[np.integer[Any] | np.bool_] | int


class Block(NamedTuple):
    """The victim whose pages are copied.

    Attributes
    ----------
    stream : int
        The stream that filled it.
    stamp : int
        What its age counts from (``gc.age``), in host page writes.
    """

    stream: int
    stamp: int


class Blocks(NamedTuple):
    """The closed blocks, in columns of shape (blocks,) that cannot be written to.

    Attributes
    ----------
    block : ndarray of uint32
        Numbers of the blocks.
    valid : ndarray of uint32
        Valid pages.
    age : ndarray of uint64
        Ages in host page writes (``gc.age`` says what they count from).
    erases : ndarray of uint32
        Times that each was erased.
    stream : ndarray of uint16
        Streams that filled them.
    pages_per_block : int
        Pages in a block.
    """

    block: npt.NDArray[np.uint32]
    valid: npt.NDArray[np.uint32]
    age: npt.NDArray[np.uint64]
    erases: npt.NDArray[np.uint32]
    stream: npt.NDArray[np.uint16]
    pages_per_block: int


class Placement:
    """Chooses the stream (the open block) of every page. Derive from it.

    Attributes
    ----------
    streams : int
        Number of streams.
    gc_streams : int
        Streams that collections write to: the collector keeps as many blocks free.
    gc_stream : int or None
        The stream of all copies. ``None``: `copies` is asked for each victim, if you define it; else copies go to stream 0.

    Notes
    -----
    Pages come in batches. A batch of host writes reaches as far ahead as nothing but these writes can change what is known of
    them: at most some thousand requests, and to the next trim. What you are told of each page is exact, as if you were asked page by
    page: when it is written, and when it was written before, be that earlier in the same batch. What you keep yourself is as old
    as the batch: a collection between two writes of a batch is told (`copies`) after `host` has decided about all of them. A scheme that is
    a function of what it is told counts exactly what the same scheme counts page by page. Behind a write buffer or FAST, nobody
    knows ahead which page comes next, and every batch has one page.

    Each run has an instance of its own: a class is called without arguments, an instance is copied for each run of a comparison.

    Examples
    --------
    >>> import isotherm as iso
    >>> class Epoch(iso.Placement):
    ...     streams = 2
    ...     gc_stream = 0
    ...
    ...     def begin(self, logical_pages):
    ...         self.length = logical_pages // 2
    ...
    ...     def host(self, lpns, last_writes, now):
    ...         return (last_writes >= 0) & (now - last_writes <= self.length)
    >>> iso.run("synth:zipf,theta=0.99,pages=4096,writes=40000", placement=Epoch).write_amplification > 1
    True
    """

    streams: int = 1
    gc_streams: int = 1
    gc_stream: int | None = None

    def begin(self, logical_pages: int) -> None:
        """Called once, before anything is asked: so many logical pages will be placed."""

    def host(self, lpns: Lpns, last_writes: Times, now: Times) -> Streams:
        """Choose the streams of host writes.

        Parameters
        ----------
        lpns : ndarray of uint32, shape (pages,)
            Logical pages, in the order in which they are written.
        last_writes : ndarray of int64, shape (pages,)
            When each was written last, in host page writes; -1 where it holds nothing.
        now : ndarray of int64, shape (pages,)
            When each is written, in host page writes.

        Returns
        -------
        ndarray of integers or bool, shape (pages,), or int
            Streams, from 0; one number for all.
        """
        raise NotImplementedError(f"{type(self).__name__} has to define host(lpns, last_writes, now)")

    def copies(self, lpns: Lpns, last_writes: Times, now: int, block: Block) -> Streams:
        """Choose the streams of the valid pages of a victim.

        Parameters
        ----------
        lpns : ndarray of uint32, shape (pages,)
            Logical pages, in the order in which they lie in the block.
        last_writes : ndarray of int64, shape (pages,)
            When the host wrote each last, in host page writes.
        now : int
            Host page writes so far.
        block : Block
            The victim.

        Returns
        -------
        ndarray of integers or bool, shape (pages,), or int
            Streams, from 0; one number for all.
        """
        return 0


class VictimPolicy:
    """Chooses the blocks to clean. Derive from it.

    Notes
    -----
    A ranking serves as many collections as it has blocks: they are cleaned in this order, and those that were cleaned meanwhile for
    another reason are passed over. A ranking of one block is a scan for each collection; a longer one is as old as its scan. Blocks in
    which every page is valid give nothing: more of them in a row than the device has blocks end the run with an error.

    Examples
    --------
    >>> import isotherm as iso, numpy as np
    >>> class Emptiest(iso.VictimPolicy):
    ...     def rank(self, blocks, now):
    ...         return blocks.block[np.argsort(blocks.valid, kind="stable")[:8]]
    >>> iso.run("synth:uniform,pages=4096,writes=40000", victim=Emptiest).write_amplification > 1
    True
    """

    def rank(self, blocks: Blocks, now: int) -> npt.NDArray[np.integer[Any]]:
        """Rank blocks.

        Parameters
        ----------
        blocks : Blocks
            The closed blocks.
        now : int
            Host page writes so far.

        Returns
        -------
        ndarray of integers, shape (at most blocks,)
            Numbers of blocks, best first; empty where none is worth cleaning.
        """
        raise NotImplementedError(f"{type(self).__name__} has to define rank(blocks, now)")


def is_placement(value: object) -> bool:
    """Whether it is a placement of the program."""
    return isinstance(value, Placement) or (isinstance(value, type) and issubclass(value, Placement))


def is_victim(value: object) -> bool:
    """Whether it is a victim policy of the program."""
    return isinstance(value, VictimPolicy) or (isinstance(value, type) and issubclass(value, VictimPolicy))


def external_name(policy: object) -> str:
    """The name by which the engine has it: the class's own."""
    own = policy if isinstance(policy, type) else type(policy)
    return f"external:class={own.__name__}"


def wrapped_placement(policy: Placement | type[Placement] | None) -> object | None:
    """What the engine asks on behalf of `policy`."""
    return None if policy is None else _Placer(policy() if isinstance(policy, type) else policy)


def wrapped_victim(policy: VictimPolicy | type[VictimPolicy] | None) -> object | None:
    """What the engine asks on behalf of `policy`."""
    return None if policy is None else _Ranker(policy() if isinstance(policy, type) else policy)


class _Placer:
    """Between the engine's bytes and a placement's arrays."""

    def __init__(self, policy: Placement) -> None:
        import numpy

        self._np = numpy
        self._policy = policy
        self._name = type(policy).__name__
        for name in ("streams", "gc_streams"):
            value = getattr(policy, name)
            if not isinstance(value, int) or not 1 <= value <= 4096:
                raise ValueError(f"{self._name}.{name}: {value!r} is no number of streams; give 1 to 4096")
        self.streams = policy.streams
        self.gc_streams = policy.gc_streams
        has_copies = type(policy).copies is not Placement.copies
        self.copies_to = policy.gc_stream if policy.gc_stream is not None else None if has_copies else 0
        if self.copies_to is not None and not 0 <= self.copies_to < self.streams:
            raise ValueError(f"{self._name}.gc_stream: {self.copies_to} is none of the {self.streams} streams")

    def begin(self, logical_pages: int) -> None:
        self._policy.begin(logical_pages)

    def host(self, lpns: bytes, last_writes: bytes, now: bytes) -> Any:
        np = self._np
        pages = np.frombuffer(lpns, np.uint32)
        chosen = self._policy.host(pages, np.frombuffer(last_writes, np.int64), np.frombuffer(now, np.int64))
        return self._streams("host", chosen, len(pages))

    def copies(self, lpns: bytes, last_writes: bytes, now: int, stream: int, stamp: int) -> Any:
        np = self._np
        pages = np.frombuffer(lpns, np.uint32)
        chosen = self._policy.copies(pages, np.frombuffer(last_writes, np.int64), now, Block(stream, stamp))
        return self._streams("copies", chosen, len(pages))

    def _streams(self, method: str, chosen: object, count: int) -> Any:
        np = self._np
        place = f"{self._name}.{method}"
        found = np.asarray(chosen)
        if found.dtype.kind not in "iub":
            raise TypeError(f"{place}: it returned {found.dtype} where streams are integers")
        if found.shape == ():
            found = np.broadcast_to(found, (count,))
        if found.shape != (count,):
            raise ValueError(f"{place}: it returned shape {found.shape} for {count} pages; return ({count},)")
        if count and (found.min() < 0 or found.max() >= self.streams):
            wrong = found[(found < 0) | (found >= self.streams)][0]
            raise ValueError(f"{place}: it returned stream {wrong}, but there are {self.streams}")
        return np.ascontiguousarray(found, dtype=np.uint16)


class _Ranker:
    """Between the engine's bytes and a victim policy's arrays."""

    def __init__(self, policy: VictimPolicy) -> None:
        import numpy

        self._np = numpy
        self._policy = policy
        self._name = type(policy).__name__

    def rank(
        self, block: bytes, valid: bytes, age: bytes, erases: bytes, stream: bytes, pages_per_block: int, now: int
    ) -> Any:
        np = self._np
        shown = Blocks(
            np.frombuffer(block, np.uint32),
            np.frombuffer(valid, np.uint32),
            np.frombuffer(age, np.uint64),
            np.frombuffer(erases, np.uint32),
            np.frombuffer(stream, np.uint16),
            pages_per_block,
        )
        found = np.asarray(self._policy.rank(shown, now))
        place = f"{self._name}.rank"
        if found.size == 0:
            return np.empty(0, np.uint32)
        if found.dtype.kind not in "iu" or found.ndim != 1:
            raise TypeError(f"{place}: it returned {found.dtype} of shape {found.shape}; return numbers of blocks, shape (n,)")
        if not np.isin(found, shown.block).all() or len(np.unique(found)) != len(found):
            raise ValueError(f"{place}: it named a block twice, or one that is not closed")
        return np.ascontiguousarray(found, dtype=np.uint32)


#: Uniform traffic may cost this much more than a device without separation, for the half-empty open blocks.
UNIFORM_TOLERANCE = 0.03


def check(policy: type[Placement] | type[VictimPolicy] | Placement | VictimPolicy) -> dict[str, Result]:
    """Put a policy of your own to the test.

    Uniform traffic has nothing to tell apart, so a placement must not cost more than a device without one (a tolerance of 3 % is for
    its open blocks); every conservation law must hold under mixed traffic with trims; two runs must count the same.

    Parameters
    ----------
    policy : class or instance
        A `Placement` or `VictimPolicy`.

    Returns
    -------
    dict of str to Result
        The runs: ``uniform``, ``mixed``.

    Raises
    ------
    AssertionError
        What the policy broke, in words.
    """
    import copy

    import numpy as np

    from isotherm._device import Device
    from isotherm._verbs import run

    kind = "placement" if is_placement(policy) else "victim" if is_victim(policy) else None
    if kind is None:
        raise TypeError(f"policy: a {type(policy).__name__} is neither a Placement nor a VictimPolicy")

    def own() -> dict[str, Any]:
        return {kind: policy if isinstance(policy, type) else copy.deepcopy(policy)}

    uniform: dict[str, Any] = {"op": 0.25, "pages_per_block": 32, "precondition": "sequential", "measure_last": 100_000}
    trace = "synth:uniform,pages=64Ki,writes=400000,seed=5"
    first, second = run(trace, **own(), **uniform), run(trace, **own(), **uniform)
    for key, value in first.to_dict().items():
        assert key.startswith("simulator_") or value == second.to_dict()[key], f"two runs differ in {key}: keep nothing from run to run"
    if kind == "placement":
        single = run(trace, placement="single", **uniform)
        cost = first["write_amplification_last"] / single["write_amplification_last"] - 1
        assert cost <= UNIFORM_TOLERANCE, (
            f"uniform traffic costs {cost:.1%} more than without separation: it tells apart what is the same"
        )
    device = Device(logical_size="32MiB", op=0.2, pages_per_block=32, **own())
    random = np.random.default_rng(9)
    for turn in range(40):
        if turn == 20:
            # Full and steady by now.
            device.reset_stats()
        pages = (random.zipf(1.2, 8192) * 2654435761) % 8190
        op = random.choice([0, 1, 2], 8192, p=[0.05, 0.92, 0.03])
        device.submit(pages * 4096, random.integers(1, 3, 8192) * 4096, op)
        device.check()
    return {"uniform": first, "mixed": device.snapshot()}
