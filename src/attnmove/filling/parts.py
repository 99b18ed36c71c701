"""A recovery on its way to disk: finished pieces are kept, so that one that was killed goes on where it was."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from attnmove.errors import RunError
from attnmove.filling.counts import Counts
from attnmove.filling.stream import Piece
from attnmove.measure.files import write_whole

_MANIFEST, _LOCK = "manifest.json", "lock"
_NOTE = b"attnmove"
_WORDS = {
    "source": "of another source",
    "run": "with another run",
    "history": "with another history",
    "options": "with other options",
    "version": "by another version of attnmove",
}


class Parts:
    """The finished pieces of one output, in a hidden folder beside it, and whose they are."""

    def __init__(self, out: Path) -> None:
        self.out = out
        self.folder = out.with_name(f".{out.name}.parts")
        self.counts = Counts()
        self.last_user: str | None = None
        self._n = 0
        self._lock: IO[bytes] | None = None

    def begin(self, errand: Mapping[str, Any], *, resume: bool) -> None:
        """Make the folder, or with `resume` take up what it holds.

        `errand` says what is recovered from what and how. Raises RunError when the folder holds an unfinished recovery
        and none is wanted, or the other way round, or that of another errand, or one that is still at work.
        """
        there = self.folder.is_dir()
        if resume and not there:
            raise RunError(f"{self.out}: there is no unfinished recovery to resume; leave out --resume")
        with self._writing():
            self.folder.mkdir(parents=True, exist_ok=True)
            self._take_lock()
            try:
                self._take_up(errand, resume=resume) if there else self._say(errand)
            except BaseException:
                self._release()
                raise

    def add(self, piece: Piece) -> None:
        """Keep a piece; when this returns, it is on disk."""
        counts = Counts.of(piece.table)
        note = {"user": piece.last_user, "ends_chunk": piece.ends_chunk, "counts": vars(counts)}
        new, path = self.folder / "unfinished", self._path(self._n)
        with self._writing():
            with new.open("wb") as file:
                schema = piece.table.schema.with_metadata({_NOTE: json.dumps(note)})
                with pa.ipc.new_file(file, schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
                    writer.write_table(piece.table.combine_chunks())
                file.flush()
                os.fsync(file.fileno())
            new.replace(path)
        self.counts.add(counts)
        self._n += 1

    def _tables(self) -> Iterator[pa.Table]:
        """The kept pieces, one after the other."""
        for number in range(self._n):
            with pa.memory_map(str(self._path(number))) as file, pa.ipc.open_file(file) as part:
                yield part.read_all().replace_schema_metadata(None)

    def finish(self, write: Callable[[Path, Iterator[pa.Table]], None]) -> None:
        """Put the pieces together, on the same disk, then in their place; the folder goes."""
        whole = self.folder / "whole"
        with self._writing():
            write(whole, self._tables())
            with whole.open("rb") as file:
                os.fsync(file.fileno())
            whole.replace(self.out)
        self._remove()

    def give_up(self) -> None:
        """After an error or an interrupt: without a finished piece there is nothing to resume."""
        if self._n == 0:
            self._remove()
        self._release()

    def _remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        self._release()

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.close()

    def _take_lock(self) -> None:
        """Keep others out for as long as this process lives, however it ends."""
        self._lock = (self.folder / _LOCK).open("wb")
        if sys.platform == "win32":  # no such locks there: nobody is kept from resuming twice
            return
        import fcntl

        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            self._release()
            raise RunError(f"{self.out}: another recovery is writing this file; wait for it, or stop it") from error

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise RunError(f"{self.out}: cannot be written ({error.strerror or error})") from error

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:06d}.arrow"

    def _check(self, errand: Mapping[str, Any]) -> None:
        try:
            known = json.loads((self.folder / _MANIFEST).read_text(encoding="utf-8"))
        except ValueError as error:
            raise RunError(f"{self.folder}: damaged; remove it and begin anew") from error
        wanted = json.loads(json.dumps(errand))
        other = next((name for name in wanted if not isinstance(known, dict) or known.get(name) != wanted[name]), None)
        if other is not None:
            raise RunError(
                f"{self.out}: the unfinished recovery was begun {_WORDS[other]}; say the same, or remove {self.folder}"
            )

    def _say(self, errand: Mapping[str, Any]) -> None:
        write_whole(self.folder / _MANIFEST, json.dumps(errand, indent=2) + "\n")

    def _take_up(self, errand: Mapping[str, Any], *, resume: bool) -> None:
        """Find the last chunk of whole users that is finished; what comes after it is done again."""
        if not resume:
            raise RunError(
                f"{self.out}: a recovery into this file is unfinished; go on with --resume, or remove {self.folder}"
            )
        if not (self.folder / _MANIFEST).exists():  # it had not come far
            self._say(errand)
            return
        self._check(errand)
        notes: list[dict[str, Any]] = []
        while self._path(len(notes)).exists():
            notes.append(self._note(self._path(len(notes))))
        while notes and not notes[-1]["ends_chunk"]:
            notes.pop()
        self._n = len(notes)
        for note in notes:
            self.counts.add(Counts(**{**note["counts"], "left_missing": Counter(note["counts"]["left_missing"])}))
            self.last_user = note["user"]

    def _note(self, path: Path) -> dict[str, Any]:
        try:
            with pa.memory_map(str(path)) as file, pa.ipc.open_file(file) as part:
                note: dict[str, Any] = json.loads(part.schema.metadata[_NOTE])
                return note
        except (pa.ArrowException, KeyError, TypeError, ValueError) as error:
            raise RunError(f"{path}: damaged; remove {self.folder} and begin anew") from error


def digest_of(*files: Path) -> str:
    """SHA-256 over the content of files."""
    digest = hashlib.sha256()
    for file in files:
        with file.open("rb") as opened:
            digest.update(hashlib.file_digest(opened, "sha256").digest())
    return digest.hexdigest()
