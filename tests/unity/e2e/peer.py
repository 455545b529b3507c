"""The server's side of the editor's wire, small enough to be trusted: it writes endpoint.json, proves itself, checks
the editor's proof, acknowledges results, and keeps every message so that scenarios can wait for them."""
from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import os
import secrets
import threading
import time
import uuid
from pathlib import Path
from typing import Any, Callable

import websockets
from websockets.asyncio.server import serve

LIMIT = 1024 * 1024


def b64url(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def bytes_of(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def mac(secret: str, side: str, client_nonce: str, server_nonce: str, port: int) -> str:
    text = f"{side}|{client_nonce}|{server_nonce}|{port}".encode()
    return b64url(hmac.new(bytes_of(secret), text, hashlib.sha256).digest())


class Peer:
    """A server for one project. Everything public is synchronous; the socket lives on a thread of its own."""

    def __init__(self, project: Path, *, wrong_mac: bool = False, interval_ms: int = 1000, acknowledges: bool = True):
        self.project, self.wrong_mac, self.interval_ms, self.acknowledges = project, wrong_mac, interval_ms, acknowledges
        self.endpoint = project / "Library" / "Raincheck" / "endpoint.json"
        self.log: list[dict] = []
        self.hellos: list[dict] = []
        self.auths: list[dict] = []
        self.closed: list[tuple[int | None, str]] = []
        self.faults: list[str] = []
        self.requests_headers: list[Any] = []
        self.secret = ""
        self.port = 0
        self.close_with: int | None = None
        self._fence = 1 << 32
        self._cond = threading.Condition()
        self._ws: Any = None
        self._server: Any = None
        self._chunks: dict[str, dict[int, bytes]] = {}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    # ---- life ------------------------------------------------------------------------------------------------------

    def start(self) -> "Peer":
        self._run(self._start())
        return self

    def stop(self) -> None:
        """Goes away, and its endpoint file with it."""
        self._run(self._stop())

    def end(self) -> None:
        self.stop()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)

    def abort(self) -> None:
        """Cuts the connection without a word."""
        self._run(self._abort())

    async def _start(self) -> None:
        self.secret = b64url(secrets.token_bytes(32))
        self._server = await serve(self._serve, "127.0.0.1", 0, max_size=None, compression=None, ping_interval=None, close_timeout=1)
        self.port = self._server.sockets[0].getsockname()[1]
        self.endpoint.parent.mkdir(parents=True, exist_ok=True)
        fresh = self.endpoint.with_suffix(".new")
        fresh.write_text(json.dumps({
            "v": 1, "kind": "unity", "port": self.port, "url": f"ws://127.0.0.1:{self.port}/unity", "pid": os.getpid(),
            "pid_started": "0", "instance_id": str(uuid.uuid4()), "secret": self.secret, "started_at": "2026-01-01T00:00:00.000Z",
        }))
        fresh.replace(self.endpoint)

    async def _stop(self) -> None:
        self.endpoint.unlink(missing_ok=True)
        if self._server is not None:
            await self._abort()
            self._server.close()
            await self._server.wait_closed()
            self._server = None

    async def _abort(self) -> None:
        if self._ws is not None:
            self._ws.transport.abort()
            self._ws = None

    def _run(self, coro: Any, timeout: float = 30) -> Any:
        return asyncio.run_coroutine_threadsafe(coro, self._loop).result(timeout)

    # ---- the wire --------------------------------------------------------------------------------------------------

    async def _serve(self, ws: Any) -> None:
        self.requests_headers.append(ws.request.headers)
        try:
            if not await self._handshake(ws):
                return
            before, self._ws = self._ws, ws
            self._note({"type": "connected"})
            if before is not None:
                await before.close(4409, "superseded")
            async for frame in ws:
                if len(frame.encode() if isinstance(frame, str) else frame) > LIMIT:
                    self.faults.append(f"a frame of {len(frame)} characters")
                await self._take(ws, json.loads(frame))
        except websockets.exceptions.ConnectionClosed:
            pass
        except Exception as fault:  # noqa: BLE001 - told by the scenario that waits
            self.faults.append(f"{type(fault).__name__}: {fault}")
        finally:
            if self._ws is ws:
                self._ws = None
            self.closed.append((ws.close_code, ws.close_reason))
            self._note({"type": "disconnected"})

    async def _handshake(self, ws: Any) -> bool:
        hello = json.loads(await ws.recv())
        self.hellos.append(hello)
        if self.close_with is not None:
            code, self.close_with = self.close_with, None
            await ws.send(json.dumps({"type": "error", "request_id": None, "error": {"code": "ERR_KIT", "message": "as the scenario wants"}}))
            await ws.close(code, "as the scenario wants")
            return False
        nonce = b64url(secrets.token_bytes(16))
        proof = mac("d3Jvbmc" if self.wrong_mac else self.secret, "server", hello["nonce"], nonce, self.port)
        await ws.send(json.dumps({
            "type": "hello", "protocol_version": 1, "server_version": "0.0.1-peer", "connection_id": str(uuid.uuid4()),
            "editor_status_interval_ms": self.interval_ms, "max_message_bytes": LIMIT, "nonce": nonce, "mac": proof, "a_field_of_tomorrow": [1],
        }))
        auth = json.loads(await ws.recv())
        self.auths.append(auth)
        if auth.get("mac") != mac(self.secret, "client", hello["nonce"], nonce, self.port):
            self.faults.append("the editor's mac is wrong")
            await ws.close(4401)
            return False
        await ws.send(json.dumps({"type": "capability", "tools": []}))
        return True

    async def _take(self, ws: Any, message: dict) -> None:
        if message.get("type") == "chunk":
            parts = self._chunks.setdefault(message["request_id"], {})
            parts[message["index"]] = base64.b64decode(message["data"])
            self._note(message)
            if len(parts) == message["total"]:
                del self._chunks[message["request_id"]]
                await self._take(ws, json.loads(b"".join(parts[n] for n in sorted(parts))))
            return
        self._note(message)
        if message.get("type") in ("result", "error") and message.get("request_id") and self.acknowledges:
            await ws.send(json.dumps({"type": "result_ack", "request_id": message["request_id"]}))

    def _note(self, message: dict) -> None:
        with self._cond:
            self.log.append(message)
            self._cond.notify_all()

    # ---- what scenarios use ----------------------------------------------------------------------------------------

    def send(self, message: dict | str) -> None:
        """Sends a message; waits for a connection first, and for the next one when this one has just ended."""
        text = message if isinstance(message, str) else json.dumps(message, ensure_ascii=False)
        dead = None
        while True:
            ws = self.wait(lambda _: self._ws if self._ws is not dead else None, "a connection", 30)
            try:
                self._run(ws.send(text))
                return
            except websockets.exceptions.ConnectionClosed:
                dead = ws

    def frames(self, parts: list[str]) -> None:
        """Sends one message in as many frames as there are parts."""
        self._run(self._ws.send(parts))

    def ask(self, tool: str, params: dict | None = None, *, job: bool = False, request_id: str | None = None, fence: int | None = None) -> str:
        """Sends an order; answers its id."""
        rid = request_id or f"{uuid.uuid4()}.1"
        self._fence += 1
        self.send({
            "type": "submit_job" if job else "execute", "request_id": rid, "fence": self._fence if fence is None else fence,
            "tool_name": tool, "params": params or {}, "timeout_ms": 60000, "submitted_at": "2026-01-01T00:00:00.000Z",
        })
        return rid

    def call(self, tool: str, params: dict | None = None, timeout: float = 30) -> Any:
        """Sends an order and waits for its value; a failure is raised with what the editor said."""
        answer = self.outcome(self.ask(tool, params), timeout)
        if answer["type"] == "error" or answer["status"] != "ok":
            raise Refused(answer.get("error") or answer.get("result"))
        return answer["result"]

    def outcome(self, rid: str, timeout: float = 30) -> dict:
        return self.of(rid, "result", "error", timeout=timeout)

    def of(self, rid: str, *kinds: str, timeout: float = 30, after: int = 0) -> dict:
        return self.wait(lambda log: next((m for m in log[after:] if m.get("type") in kinds and m.get("request_id") == rid), None), f"{' or '.join(kinds)} of {rid}", timeout)

    def about(self, rid: str) -> list[dict]:
        with self._cond:
            return [m for m in self.log if m.get("request_id") == rid]

    def count(self, kind: str) -> int:
        with self._cond:
            return sum(m.get("type") == kind for m in self.log)

    def mark(self) -> int:
        """A place in the log, for what has to come after it."""
        with self._cond:
            return len(self.log)

    def wait(self, found: Callable[[list[dict]], Any], what: str, timeout: float = 30) -> Any:
        until = time.monotonic() + timeout
        with self._cond:
            while True:
                value = found(self.log)
                if value:
                    return value
                left = until - time.monotonic()
                if left <= 0:
                    raise TimeoutError(f"{what}: not within {timeout:g} s; the last messages: {json.dumps(self.log[-6:])[:1500]}; faults: {self.faults}")
                self._cond.wait(left)

    def wait_connected(self, n: int = 1, timeout: float = 30) -> None:
        self.wait(lambda log: sum(m.get("type") == "connected" for m in log) >= n, f"connection {n}", timeout)


class Refused(Exception):
    """What the editor said instead of a value."""

    def __init__(self, said: dict):
        super().__init__(json.dumps(said))
        self.said = said
