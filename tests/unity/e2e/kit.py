"""What every scenario gets: a project, a server and an editor of its own."""
from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any, Callable

from editor import Editor
from peer import Peer
from server import Server

SCENARIOS: list[tuple[str, Callable[["Kit"], None], bool]] = []


def scenario(name: str, needs_server: bool = False) -> Callable:
    """Registers a scenario. The name says what has to hold; some need the real `unity-mcp`."""

    def register(run: Callable) -> Callable:
        SCENARIOS.append((name, run, needs_server))
        return run

    return register


class Kit:
    def __init__(self, dotnet: Path, out: Path, binary: Path | None):
        self.dotnet, self.out, self.binary = dotnet, out, binary
        self.folder = Path(tempfile.mkdtemp(prefix="raincheck-unity-"))
        # Spaces, brackets and letters beyond ASCII, as real projects have them.
        self.project = self.folder / "Assets (old) Ünï #1" / "Proj"
        self.project.mkdir(parents=True)
        self.editors: list[Editor] = []
        self.peers: list[Peer] = []
        self.servers: list[Server] = []

    def peer(self, **how: Any) -> Peer:
        self.peers.append(Peer(self.project, **how).start())
        return self.peers[-1]

    def editor(self, **how: Any) -> Editor:
        self.editors.append(Editor(self.dotnet, self.out, self.project, **how).start())
        return self.editors[-1]

    def server(self, *flags: str) -> Server:
        """A real server for the project; the next one takes over what this one leaves."""
        version = self.project / "ProjectSettings" / "ProjectVersion.txt"
        if not version.exists():
            version.parent.mkdir()
            version.write_text("m_EditorVersion: 6000.0.30f1\n")
            (self.project / "Packages").mkdir()
            (self.project / "Packages" / "manifest.json").write_text('{"dependencies":{}}\n')
            (self.project / "Assets").mkdir()
        self.servers.append(Server(self.binary, self.project, self.folder / "server", *flags).start())
        return self.servers[-1]

    def both(self, **how: Any) -> tuple[Peer, Editor]:
        peer, editor = self.peer(), self.editor(**how)
        # The editor speaks once it has read that it is connected.
        peer.wait(lambda log: any(m["type"] == "editor_status" for m in log), "the first sign of life", 60)
        return peer, editor

    def gate(self, name: str) -> Path:
        """A file that a tool of the scenario waits for."""
        return self.folder / f"gate-{name}"

    def close(self) -> list[str]:
        for editor in self.editors:
            editor.quit()
        for peer in self.peers:
            peer.end()
        for server in self.servers:
            server.stop()
        shutil.rmtree(self.folder, ignore_errors=True)
        faults = [fault for peer in self.peers for fault in peer.faults]
        faults += [e["detail"] for editor in self.editors for e in editor.events if e["event"] == "stderr"]
        faults += [e["detail"] for editor in self.editors for e in editor.events if e["event"] == "log" and "fault of the package" in e["detail"]]
        return faults


def same(actual: Any, expected: Any, what: str = "") -> None:
    if actual != expected:
        raise AssertionError(f"{what}: expected {expected!r}, was {actual!r}")


def check(condition: Any, what: str) -> None:
    if not condition:
        raise AssertionError(what)
