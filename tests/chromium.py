"""A real Chromium without a window, driven by its DevTools protocol over two pipes: no driver program, no port, no package.

Each command has an answer; what the browser says by itself (its console, above all) is kept. `Tab.until` waits in the page
itself, by looking after each frame.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from attrs import define, field
from launches import TIMEOUT_S

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)
NO_CHROMIUM = "there is no Chromium here; write: make browser"
OPTIONS = (
    "--headless",
    "--remote-debugging-pipe",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--no-proxy-server",
    "--force-color-profile=srgb",
)
PIPES = 'exec "$@" 3<&"$THREE" 4>&"$FOUR"'
"""A shell's words that give the browser its pipes: it expects them as descriptors 3 and 4."""
UNTIL = """
new Promise((resolve, reject) => {{
  const ends = performance.now() + {timeout_ms};
  const look = () => {{
    let found;
    try {{ found = ({claim}); }} catch (error) {{ found = false; }}
    if (found) resolve(found);
    else if (performance.now() > ends) reject(new Error("waited in vain"));
    else setTimeout(look, 10);
  }};
  look();
}})
"""


@define
class Tab:
    """One page. `said` is what it wrote to its console, and each exception that nobody caught."""

    _write: int
    _read: int
    session: str = ""
    said: list[str] = field(factory=list)
    _count: int = 0
    _data: bytearray = field(factory=bytearray)

    def ask(self, method: str, **given: object) -> dict[str, Any]:
        """Do what the protocol calls so; return the answer."""
        self._count += 1
        message: dict[str, Any] = {"id": self._count, "method": method, "params": given}
        if self.session:
            message["sessionId"] = self.session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        ends_at = time.monotonic() + 2 * TIMEOUT_S
        while True:
            answer = self._next(ends_at)
            if answer.get("id") == self._count:
                assert "error" not in answer, (method, answer["error"])
                found: dict[str, Any] = answer["result"]
                return found
            self._note(answer)

    def _next(self, ends_at: float) -> Mapping[str, Any]:
        while b"\0" not in self._data:
            ready, _, _ = select.select([self._read], [], [], max(ends_at - time.monotonic(), 0))
            assert ready, "Chromium does not answer"
            data = os.read(self._read, 1 << 20)
            assert data, "Chromium has ended"
            self._data += data
        message, _, rest = bytes(self._data).partition(b"\0")
        self._data = bytearray(rest)
        found: dict[str, Any] = json.loads(message)
        return found

    def _note(self, event: Mapping[str, Any]) -> None:
        given = event.get("params", {})
        match event.get("method"):
            case "Runtime.consoleAPICalled":
                self.said.append(f"{given['type']}: {[each.get('value') for each in given['args']]}")
            case "Runtime.exceptionThrown":
                self.said.append(f"exception: {given['exceptionDetails']}")
            case "Log.entryAdded":
                self.said.append(f"{given['entry']['level']}: {given['entry']['text']}")
            case _:
                pass

    def opens(self, address: str) -> None:
        assert "errorText" not in self.ask("Page.navigate", url=address)
        self.until("document.readyState === 'complete'")

    def run(self, script: str) -> Any:
        """Return the value of an expression, or of what it promises."""
        answer = self.ask("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, (answer["exceptionDetails"], self.said)
        return answer["result"].get("value")

    def until(self, claim: str, timeout_s: float = TIMEOUT_S) -> Any:
        """Wait until an expression is true in the page; return its value."""
        answer = self.ask(
            "Runtime.evaluate",
            expression=UNTIL.format(claim=claim, timeout_ms=timeout_s * 1_000),
            awaitPromise=True,
            returnByValue=True,
        )
        if "exceptionDetails" in answer:
            text = self.run("document.body.innerText")
            raise AssertionError(f"waited in vain for {claim}; {self.said}; the page says:\n{text}")
        return answer["result"].get("value")

    def width(self, pixels: int, scheme: str = "light") -> None:
        """Be a screen of this width, that likes this colour scheme."""
        self.ask(
            "Emulation.setDeviceMetricsOverride",
            width=pixels,
            height=900,
            deviceScaleFactor=1,
            mobile=pixels < 600,
        )
        self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def press(self, key: str) -> None:
        codes = {"Tab": 9, "Enter": 13, "End": 35, "Home": 36, "ArrowLeft": 37, "ArrowRight": 39, "ArrowDown": 40}
        text = {"text": "\r"} if key == "Enter" else {}
        for kind in ("keyDown", "keyUp"):
            self.ask("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=codes[key], **text)

    def heard(self) -> list[str]:
        """What a screen reader finds, in its order: role and name."""
        nodes = self.ask("Accessibility.getFullAXTree")["nodes"]
        return [
            f"{node['role']['value']}: {node.get('name', {}).get('value', '')}" for node in nodes if not node["ignored"]
        ]


@contextmanager
def tab(folder: Path) -> Iterator[Tab]:
    """A page of a browser of its own. Skips the test by name where there is none."""
    if CHROMIUM is None:
        pytest.skip(NO_CHROMIUM)
    with ExitStack() as stack:
        theirs_in, ours_out = os.pipe()
        ours_in, theirs_out = os.pipe()
        for descriptor in (theirs_in, ours_out, ours_in, theirs_out):
            stack.callback(os.close, descriptor)
        given = [fcntl.fcntl(descriptor, fcntl.F_DUPFD, 20) for descriptor in (theirs_in, theirs_out)]
        browser = subprocess.Popen(
            ["bash", "-c", PIPES, "chromium", CHROMIUM, *OPTIONS, f"--user-data-dir={folder}", "about:blank"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=given,
            env={**os.environ, "THREE": str(given[0]), "FOUR": str(given[1]), "HOME": str(folder)},
        )
        for descriptor in given:
            os.close(descriptor)
        stack.callback(browser.wait)
        stack.callback(browser.kill)
        page = Tab(ours_out, ours_in)
        target = page.ask("Target.createTarget", url="about:blank")["targetId"]
        page.session = page.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Accessibility"):
            page.ask(f"{domain}.enable")
        yield page
        page.session = ""
        page.ask("Browser.close")
        browser.wait(TIMEOUT_S)
