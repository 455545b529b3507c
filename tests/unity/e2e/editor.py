"""A headless editor as a process: the real package on .NET 8 above the fake of UnityEditor."""
from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from pathlib import Path
from typing import Any, Callable


class Editor:
    def __init__(self, dotnet: Path, out: Path, project: Path, *, tick_ms: int = 10, env: dict[str, str] | None = None):
        self.dotnet, self.out, self.project, self.tick_ms, self.env = dotnet, out, project, tick_ms, env or {}
        self.events: list[dict] = []
        self._cond = threading.Condition()
        self._process: subprocess.Popen | None = None

    def start(self) -> "Editor":
        (self.project / "Assets").mkdir(parents=True, exist_ok=True)
        run = self.out / "run"
        env = {k: v for k, v in os.environ.items() if not k.startswith(("DOTNET_", "RAINCHECK_"))}
        env |= {"DOTNET_SYSTEM_GLOBALIZATION_INVARIANT": "1", "DOTNET_TieredPGO": "0", "RAINCHECK_RUNTIME_DIR": str(self.project / "runtime"), **self.env}
        self._process = subprocess.Popen(
            [str(self.dotnet), "exec", str(run / "FakeEditor.dll"), str(run), str(self.project), str(self.tick_ms), str(self.out / "contents")],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8", env=env,
        )
        threading.Thread(target=self._read, args=(self._process,), daemon=True).start()
        threading.Thread(target=self._read_faults, args=(self._process,), daemon=True).start()
        return self

    def _read(self, process: subprocess.Popen) -> None:
        for line in process.stdout:
            self._note(json.loads(line))
        self._note({"event": "ended"})

    def _read_faults(self, process: subprocess.Popen) -> None:
        for line in process.stderr:
            self._note({"event": "stderr", "detail": line.rstrip()})

    def _note(self, event: dict) -> None:
        with self._cond:
            self.events.append(event)
            self._cond.notify_all()

    @property
    def pid(self) -> int:
        return self._process.pid

    def do(self, order: str, **more: Any) -> None:
        """Gives an order and waits until it was obeyed; `block` is obeyed when it holds the main thread."""
        ends = "blocked" if order == "block" else "obeyed"
        before = self.count(ends)
        self._process.stdin.write(json.dumps({"do": order, **more}) + "\n")
        self._process.stdin.flush()
        self.wait(lambda _: self.count(ends) > before, f"`{order}` is obeyed")

    def reload(self, dirty: bool = False) -> dict:
        """Reloads the domain; answers what was said of the old one."""
        before = self.count("unloaded")
        self.do("reload", dirty=dirty)
        return [e for e in self.events if e["event"] == "unloaded"][before]

    def count(self, event: str, detail: str | None = None) -> int:
        with self._cond:
            return sum(e["event"] == event and (detail is None or e.get("detail") == detail) for e in self.events)

    def effects(self, mark: str) -> int:
        """How often a tool of the scenario was really run."""
        return self.counted("effect", mark)

    def counted(self, event: str, detail: str | None = None) -> int:
        """Counts events once everything that was said up to now has been read. Needs a main thread that answers."""
        self.do("sync")
        return self.count(event, detail)

    def wait(self, found: Callable[[list[dict]], Any], what: str, timeout: float = 40) -> Any:
        until = time.monotonic() + timeout
        with self._cond:
            while True:
                value = found(self.events)
                if value:
                    return value
                left = until - time.monotonic()
                if left <= 0 or self.events[-1:] == [{"event": "ended"}]:
                    raise TimeoutError(f"{what}: not within {timeout:g} s; the last events: {self.events[-12:]}")
                self._cond.wait(left)

    def wait_event(self, event: str, detail: str | None = None, n: int = 1, timeout: float = 40) -> None:
        self.wait(lambda _: self.count(event, detail) >= n, f"event {event} {detail or ''} x{n}", timeout)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(10)

    def quit(self) -> None:
        """Closes the editor as a person would."""
        if self._process.poll() is None:
            try:
                self._process.stdin.write('{"do":"quit"}\n')
                self._process.stdin.flush()
            except OSError:
                pass
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self.kill()
