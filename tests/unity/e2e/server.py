"""The real `unity-mcp` as a process, with an MCP client on its standard input and output."""
from __future__ import annotations

import json
import subprocess
import threading
import time
from pathlib import Path
from typing import Any, Callable


class Server:
    def __init__(self, binary: Path, project: Path, state: Path, *flags: str):
        self.binary, self.project, self.state, self.flags = binary, project, state, flags
        self._answers: dict[int, dict] = {}
        self._cond = threading.Condition()
        self._last = 0

    def start(self) -> "Server":
        self.state.mkdir(parents=True, exist_ok=True)
        self._log = (self.state / "stderr").open("a")
        self._process = subprocess.Popen(
            [str(self.binary), "serve", "--project", str(self.project), "--state-dir", str(self.state / "state"), "--runtime-dir", str(self.state / "run"), *self.flags],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, text=True, encoding="utf-8",
        )
        threading.Thread(target=self._read, args=(self._process,), daemon=True).start()
        self.request("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "raincheck-unity-tests", "version": "1"}})
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return self

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(10)

    def stop(self) -> None:
        if self._process.poll() is None:
            self._process.stdin.close()
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self.kill()
        self._log.close()

    def begin(self, tool: str, **arguments: Any) -> int:
        """Calls a tool without waiting; answers the number to wait for."""
        return self._ask("tools/call", {"name": tool, "arguments": arguments})

    def call(self, tool: str, **arguments: Any) -> dict:
        return self.answer(self.begin(tool, **arguments))

    def command(self, name: str, timeout: float, **params: Any) -> dict:
        """Calls a command of the project."""
        return self.call("unity_call", name=name, params=params, timeout=timeout)

    def end(self, log_id: str) -> dict:
        """Waits for the end of an operation."""
        until = time.monotonic() + 60
        while True:
            answer = self.call("get_operation_result", log_id=log_id, wait=True, timeout=20)
            if answer["status"] not in ("running", "timeout") or time.monotonic() > until:
                return answer

    def until(self, log_id: str, found: Callable[[dict], bool], what: str) -> dict:
        """Reads a running operation until it is as wanted."""
        until = time.monotonic() + 60
        while True:
            answer = self.call("get_operation_result", log_id=log_id, wait=True, timeout=0.2)
            if found(answer):
                return answer
            if time.monotonic() > until:
                raise TimeoutError(f"{what}: {json.dumps(answer)[:1500]}")

    def answer(self, number: int, timeout: float = 70) -> dict:
        """The JSON that a call was answered with; of an answer with a picture, the JSON beside it."""
        result = self._wait(number, timeout)["result"]
        texts = [c["text"] for c in result["content"] if c["type"] == "text"]
        return json.loads(texts[0]) | {"_images": sum(c["type"] == "image" for c in result["content"])}

    def request(self, method: str, params: dict) -> dict:
        return self._wait(self._ask(method, params), 60)

    def _ask(self, method: str, params: dict) -> int:
        with self._cond:
            self._last += 1
            number = self._last
        self._send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        return number

    def _send(self, message: dict) -> None:
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()

    def _read(self, process: subprocess.Popen) -> None:
        for line in process.stdout:
            message = json.loads(line)
            with self._cond:
                if "id" in message:
                    self._answers[message["id"]] = message
                self._cond.notify_all()

    def _wait(self, number: int, timeout: float) -> dict:
        until = time.monotonic() + timeout
        with self._cond:
            while number not in self._answers:
                left = until - time.monotonic()
                if left <= 0 or self._process.poll() is not None:
                    raise TimeoutError(f"answer {number}: not within {timeout:g} s; {(self.state / 'stderr').read_text()[-2000:]}")
                self._cond.wait(min(left, 1))
            return self._answers.pop(number)
