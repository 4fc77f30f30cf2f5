"""Sweeps on Ray: an executor over its tasks."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future
from typing import Any, TypeVar

T = TypeVar("T")


def _call(fn: Callable[..., T], args: tuple[Any, ...], kwargs: dict[str, Any]) -> T:
    return fn(*args, **kwargs)


class RayExecutor(Executor):
    """Runs calls as tasks of a Ray cluster, which has to be initialised (``ray.init()``).

    Parameters
    ----------
    num_cpus : float, optional
        Processors that a call takes.
    **options
        Further options of ``ray.remote``, such as ``resources`` or ``runtime_env``.

    Notes
    -----
    Tasks are not tried again when their worker dies: the sweep stops with `isotherm.SweepInterrupted`, and goes on when it is called
    again.
    """

    def __init__(self, *, num_cpus: float = 1, **options: Any) -> None:
        import ray

        self._ray = ray
        self._options: dict[str, Any] = {"num_cpus": num_cpus, "max_retries": 0, **options}
        self._ended = False

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Start a call as a task."""
        if self._ended:
            raise RuntimeError("the executor was shut down; make a new one")
        future: Future[T] = Future()
        future.set_running_or_notify_cancel()
        reference = self._ray.remote(**self._options)(_call).remote(fn, args, kwargs)
        reference.future().add_done_callback(lambda done: self._settle(future, done))
        return future

    def _settle(self, future: Future[T], done: Future[T]) -> None:
        error = done.exception()
        if error is None:
            future.set_result(done.result())
            return
        # What the call raised comes wrapped; a worker that is gone breaks the executor.
        cause = getattr(error, "cause", None)
        if isinstance(error, self._ray.exceptions.RayTaskError) and isinstance(cause, BaseException):
            future.set_exception(cause)
        elif isinstance(error, self._ray.exceptions.RayTaskError):
            future.set_exception(error)
        else:
            broken = BrokenExecutor(str(error))
            broken.__cause__ = error
            future.set_exception(broken)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more calls. The cluster is its owner's to end."""
        self._ended = True
