"""Traces: requests in files, synthetic workloads, arrays and tables."""

from __future__ import annotations

import enum
import json
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol

from isotherm import _native

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Integers = npt.NDArray[np.integer[Any]]


class ArrowStream(Protocol):
    """Whatever hands out a stream by Arrow's PyCapsule interface: a pyarrow table, a polars data frame, a DuckDB relation."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


class Op(enum.IntEnum):
    """What a request asks, as arrays code it."""

    READ = 0
    WRITE = 1
    TRIM = 2
    FLUSH = 3
    WRITE_ZEROES = 4


class Trace:
    """Requests of a host, in order of time, that can be replayed as often as needed.

    Parameters
    ----------
    source : str, path or table
        A trace file in any format that ``isotherm list formats`` names (compressed or not); a synthetic workload such as
        ``"synth:zipf,theta=0.99,pages=1Mi,writes=10M,seed=1"``; a URL that fsspec reads (``s3://...``, with the extra ``remote``), of
        which a copy is kept by its content; or a table with the columns ``offset``, ``length`` (bytes) and, where they are there,
        ``op`` (codes of `Op`) and ``time`` (ns), from anything that speaks Arrow's PyCapsule interface. Tables are not copied.
    format, time_unit, object_bytes, volume, skip_bad, action, sort, assume_writes, keep_leading_trim : optional
        What a file does not say of itself, as the options of the same names on the command line.

    Raises
    ------
    SpecError
        The workload's description is wrong.
    OSError
        There is no such file.

    Notes
    -----
    A file is read when something is asked of it: what is wrong with its content raises `TraceError` then.

    Examples
    --------
    >>> import isotherm as iso
    >>> trace = iso.Trace("synth:uniform,pages=1024,writes=5000")
    >>> trace.info()["writes"]
    5000
    """

    def __init__(self, source: str | os.PathLike[str] | ArrowStream, /, **options: Any) -> None:
        self._arguments: tuple[str, dict[str, Any]] | None = None
        if hasattr(source, "__arrow_c_stream__"):
            self._native = _native.Trace.from_arrow(source.__arrow_c_stream__(), options.pop("name", None))
            if options:
                raise TypeError(f"{next(iter(options))}: a table has no use for it")
            return
        known = "format time_unit object_bytes volume skip_bad action sort assume_writes keep_leading_trim".split()
        unknown = [name for name in options if name not in known]
        if unknown:
            raise TypeError(f"{unknown[0]}: no option of a trace; there are {', '.join(known)}")
        if not isinstance(source, (str, os.PathLike)):
            kind = type(source).__name__
            raise TypeError(f"source: a {kind} is no trace; give a path, a workload, or a table of Arrow's, or use from_arrays")
        name = os.fspath(source)
        path = None
        if "://" in name:
            from isotherm._remote import fetched

            path = fetched(name)
        self._native = _native.Trace(name, path, **options)
        self._arguments = (name, options)

    @classmethod
    def from_arrays(
        cls,
        offset: Integers,
        length: Integers | int,
        op: Integers | int | None = None,
        time: Integers | None = None,
        *,
        name: str | None = None,
    ) -> Trace:
        """A trace of requests in arrays, which are read where they lie.

        Parameters
        ----------
        offset : ndarray of integers, shape (requests,)
            First byte of each request, from the start of the device.
        length : ndarray of integers, shape (requests,), or int
            Bytes of each request; one number for all.
        op : ndarray of integers, shape (requests,), or int, optional
            Codes of `Op`. Default: all are writes.
        time : ndarray of integers, shape (requests,), optional
            Arrival in nanoseconds, never running backwards. Default: all at 0.
        name : str, optional
            What results call it. Default: ``arrays:`` and a hash of the content.

        Raises
        ------
        TypeError, ValueError
            Wrong dtype, byte order or shape, masked arrays, negative offsets, unsorted times: the message names the argument and the
            place in it. Arrays that are changed while a run reads them end that run in the same way.
        """
        made = object.__new__(cls)
        made._native = _native.Trace.from_arrays(offset, length, op, time, name)
        made._arguments = None
        return made

    @property
    def name(self) -> str:
        """What results call it."""
        return self._native.name

    def info(self, page_size: int = 4096) -> dict[str, Any]:
        """What one pass over the trace finds.

        Parameters
        ----------
        page_size : int, optional
            Bytes of a page, in which the footprint is counted.

        Returns
        -------
        dict
            Requests by kind, bytes, span, footprint, alignment, duration (ns), as ``traces`` of results have them.
        """
        found: dict[str, Any] = json.loads(self._native.profile(page_size)[0])
        return found

    def convert(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> int:
        """Write the trace in a canonical form, by the ending: ``.csv``, ``.csv.gz``, ``.csv.zst`` or ``.parquet``.

        Returns
        -------
        int
            Number of requests. The file appears when it is whole.
        """
        return self._native.convert(os.fspath(path), overwrite)

    def batches(self, size: int = 65536) -> _native.Batches:
        """The requests as a stream of Arrow's record batches.

        Parameters
        ----------
        size : int, optional
            Requests in a batch.

        Returns
        -------
        Batches
            To be iterated (a `Table` each), or given to any library that reads Arrow: columns ``time`` (uint64, ns), ``op``
            (uint8, codes of `Op`), ``offset`` and ``length`` (uint64, bytes), ``source`` (uint16).
        """
        return self._native.batches(size)

    def __iter__(self) -> Iterator[_native.Table]:
        return iter(self.batches())

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """A capsule with the requests, by Arrow's PyCapsule interface."""
        return self.batches().__arrow_c_stream__(requested_schema)

    def __reduce__(self) -> tuple[Any, ...]:
        if self._arguments is None:
            raise TypeError("a trace of arrays cannot be pickled; write it with convert and send its path")
        name, options = self._arguments
        return (_rebuilt, (name, options))

    def __repr__(self) -> str:
        return f"<isotherm.Trace {self.name}>"

    def _repr_html_(self) -> str:
        import html

        return f"<pre>{html.escape(self._native.profile(4096)[1])}</pre>"


def _rebuilt(name: str, options: dict[str, Any]) -> Trace:
    return Trace(name, **options)


def trace_of(trace: Trace | str | os.PathLike[str] | ArrowStream) -> Trace:
    """A trace, from what stands for one."""
    return trace if isinstance(trace, Trace) else Trace(trace)
