"""Traces behind URLs: read through fsspec once, and kept by their content."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any


def cache_folder() -> Path:
    """Where copies are kept: ``ISOTHERM_CACHE``, or ``isotherm`` in the user's cache."""
    given = os.environ.get("ISOTHERM_CACHE")
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(given) if given else Path(base) / "isotherm"


def fetched(url: str) -> str:
    """The path of a copy of what lies at `url`.

    A copy is named by the SHA-256 of its content. What the store says of the object (its version, size and time) is remembered, so
    that the same object is not fetched again, and a changed one is.
    """
    try:
        import fsspec
    except ImportError:
        raise ImportError(f"{url}: reading URLs needs fsspec; pip install 'isotherm[remote]'") from None

    filesystem: Any
    filesystem, path = fsspec.core.url_to_fs(url)
    folder = cache_folder()
    (folder / "traces").mkdir(parents=True, exist_ok=True)
    (folder / "urls").mkdir(exist_ok=True)
    version = f"{url}\n{filesystem.ukey(path)}"
    note = folder / "urls" / f"{hashlib.sha256(version.encode()).hexdigest()}.json"
    try:
        copy = folder / "traces" / json.loads(note.read_text(encoding="utf-8"))["copy"]
        if copy.exists():
            return str(copy)
    except (OSError, ValueError, KeyError):
        pass
    content = hashlib.sha256()
    # The ending says how it is packed.
    ending = "".join(Path(path).suffixes[-2:])
    with tempfile.NamedTemporaryFile(dir=folder / "traces", delete=False) as target:
        try:
            with filesystem.open(path, "rb") as source:
                while block := source.read(1 << 20):
                    content.update(block)
                    target.write(block)
            copy = folder / "traces" / f"{content.hexdigest()}{ending}"
            target.close()
            os.replace(target.name, copy)
        except BaseException:
            os.unlink(target.name)
            raise
    write_whole(note, json.dumps({"url": url, "copy": copy.name}))
    return str(copy)


def write_whole(path: Path, text: str) -> None:
    """Writes a file whole or not at all, on the disk when this returns."""
    with tempfile.NamedTemporaryFile("w", dir=path.parent, prefix=".", delete=False, encoding="utf-8") as target:
        try:
            target.write(text)
            target.flush()
            os.fsync(target.fileno())
            os.chmod(target.name, 0o644)
            os.replace(target.name, path)
        except BaseException:
            os.unlink(target.name)
            raise
