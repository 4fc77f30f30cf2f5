"""A device that takes requests step by step."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from isotherm import _native
from isotherm._results import Result
from isotherm._spec import Given, Spec, seed_of, spec_of

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Integers = npt.NDArray[np.integer[Any]]


class Device:
    """A simulated SSD, for programs that make requests as they go.

    Parameters
    ----------
    spec : Spec, TOML or path, optional
        The device; keywords stand over it. Its size must be given: ``logical_size="1GiB"``.
    seed : int, optional
        Seed of every random choice.
    name : str, optional
        What results call the workload.
    **options
        Keys, as for `Spec`.

    Notes
    -----
    A device belongs to one thread at a time; a second one gets a ``RuntimeError``. Requests with times must come in order over
    all calls.

    Examples
    --------
    >>> import isotherm as iso, numpy as np
    >>> device = iso.Device(logical_size="16MiB", op=0.1, placement="host_gc")
    >>> pages = np.random.default_rng(1).integers(0, 4096, 50_000)
    >>> device.submit(pages * 4096, 4096)
    >>> device.snapshot().write_amplification > 1
    True
    """

    def __init__(
        self,
        spec: Spec | str | os.PathLike[str] | None = None,
        /,
        *,
        seed: int = 1,
        name: str = "device",
        **options: Any,
    ) -> None:
        from isotherm._policies import wrapped_placement, wrapped_victim

        given = Given(options)
        if given.replay:
            raise _native.SpecError(f"{given.replay[0].split('=')[0]}: a device has no replay; leave it out")
        self.spec = spec_of(spec, given)
        self._native = _native.Device(
            self.spec.toml(),
            [],
            seed_of(seed),
            name,
            wrapped_placement(self.spec.placement),
            wrapped_victim(self.spec.victim),
        )

    def submit(
        self,
        offset: Integers,
        length: Integers | int,
        op: Integers | int | None = None,
        time: Integers | None = None,
    ) -> None:
        """Carry requests out, in order.

        Parameters
        ----------
        offset : ndarray of integers, shape (requests,)
            First byte of each.
        length : ndarray of integers, shape (requests,), or int
            Bytes of each.
        op : ndarray of integers, shape (requests,), or int, optional
            Codes of `Op`; writes unless given.
        time : ndarray of integers, shape (requests,), optional
            Arrival in nanoseconds.

        Raises
        ------
        DeviceError
            A request beyond the end, or a device that is full or worn out. Requests before it have been carried out.
        """
        self._native.submit(offset, length, op, time)

    def idle(self, budget_ns: int) -> None:
        """Let the device clean in the background for so many nanoseconds of its own time."""
        self._native.idle(budget_ns)

    def reset_stats(self) -> None:
        """Begin to count anew, once the device is full and steady: what was counted before is in no later `snapshot`. Erases of a block,
        and so its wear, are kept."""
        self._native.reset_stats()

    def snapshot(self) -> Result:
        """Everything counted since the device was made, or `reset_stats`, as a `Result`; its verdict says whether that is enough to mean
        something."""
        return Result(self._native.snapshot("isotherm.Device.snapshot()"), 0)

    def blocks(self) -> dict[str, npt.NDArray[Any]]:
        """The block table.

        Returns
        -------
        dict of ndarray, each of shape (blocks,)
            ``block``, ``stream``, ``valid`` (pages), ``erases``, ``stamp`` (host page writes), ``phase`` (words).
        """
        import numpy as np

        columns = zip(*self._native.blocks(), strict=True)
        return {name: np.array(column) for name, column in zip(["block", "stream", "valid", "erases", "stamp", "phase"], columns, strict=True)}

    def check(self) -> None:
        """Check every conservation law; a ``ValueError`` says which one is broken, which is a bug of isotherm."""
        self._native.check()

    @property
    def capacity_bytes(self) -> int:
        """Bytes that the host sees."""
        return self._native.capacity_bytes
