"""A real browser for tests: Debian's chromium without a window, driven by its DevTools protocol over two pipes."""

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import time

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
TIMEOUT = 60.0  # seconds for one answer: machines of tests are slow
# The browser wants its commands on descriptor 3 and answers on 4.
LAUNCH = """import fcntl, os, sys
r, w = (fcntl.fcntl(int(n), fcntl.F_DUPFD, 10) for n in sys.argv[1:3])
os.dup2(r, 3), os.dup2(w, 4)
os.execvp(sys.argv[3], sys.argv[3:])"""


def program():
    """The browser's name; a machine without one cannot run these tests, and they fail."""
    found = next((name for name in PROGRAMS if shutil.which(name)), None)
    assert found, f"none of {', '.join(PROGRAMS)} is installed: scripts/system-packages test"
    return found


class Browser:
    """One browser.  What pages request, log and throw is kept in `requests` and `errors`."""

    def __init__(self, folder):
        to_read, self._out = os.pipe()
        self._in, to_write = os.pipe()
        flags = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--disable-extensions",
            "--hide-scrollbars",
            "--remote-debugging-pipe",
            f"--user-data-dir={folder}",
        ]
        command = [sys.executable, "-c", LAUNCH, str(to_read), str(to_write), program(), *flags, "about:blank"]
        self._process = subprocess.Popen(command, pass_fds=(to_read, to_write), stderr=subprocess.DEVNULL)
        os.close(to_read), os.close(to_write)
        self._number, self._rest, self._session = 0, b"", None
        self.requests, self.errors, self._loaded = [], [], False
        target = self.command("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.command("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.command(f"{domain}.enable")

    def command(self, method, **params):
        """Asks, and waits for the answer."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]

    def _receive(self):
        """The next message; events are noted on the way."""
        until = time.monotonic() + TIMEOUT
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._in], [], [], max(0, until - time.monotonic()))
            assert ready, f"the browser said nothing for {TIMEOUT:.0f} s"
            data = os.read(self._in, 1 << 20)
            assert data, "the browser ended"
            self._rest += data
        line, self._rest = self._rest.split(b"\0", 1)
        message = json.loads(line)
        self._note(message.get("method"), message.get("params"))
        return message

    def _note(self, event, params):
        if event == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif event == "Page.loadEventFired":
            self._loaded = True
        elif event == "Runtime.exceptionThrown":
            self.errors.append(params["exceptionDetails"])
        elif event == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.errors.append(params["entry"])
        elif event == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.errors.append(params["args"])

    def open(self, path, width=1400, height=900, dark=False):
        """Shows a file, and waits until it is loaded and drawn."""
        self.requests, self.errors, self._loaded = [], [], False
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.command("Emulation.setEmulatedMedia", features=[scheme])
        self.command(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        self.command("Page.navigate", url=f"file://{path}")
        while not self._loaded:
            self._receive()
        self.settle()

    def settle(self):
        """Waits for two frames: what was asked for before is drawn."""
        self.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")

    def run(self, script):
        """The value of an expression in the page; a promise is waited for."""
        result = self.command("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def mouse(self, kind, x, y, **more):
        """A mouse event at a place of the window: mouseMoved, mousePressed, mouseReleased, mouseWheel."""
        self.command("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def key(self, key):
        """A key pressed and let go."""
        for kind in ("keyDown", "keyUp"):
            self.command(
                "Input.dispatchKeyEvent", type=kind, key=key, text=key if len(key) == 1 and kind == "keyDown" else ""
            )

    def screenshot(self, path, whole=True):
        """The page as a PNG."""
        data = self.command("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def close(self):
        self._session = None
        try:
            self.command("Browser.close")
        except (AssertionError, OSError):
            self._process.kill()
        self._process.wait(TIMEOUT)
        os.close(self._in), os.close(self._out)
