# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium by the WebDriver protocol, with nothing but the standard library.

    with Browser(width=1280, height=800, dark=False) as b:
        b.open(url); b.js("return document.title"); b.keys("Enter"); b.screenshot(path)
"""
import base64
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

FLAGS = ("--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking "
         "--disable-component-update --disable-sync --disable-dev-shm-usage --hide-scrollbars").split()
KEYS = {"Enter": "\ue007", "Escape": "\ue00c", "ArrowLeft": "\ue012", "ArrowUp": "\ue013",
        "ArrowRight": "\ue014", "ArrowDown": "\ue015", "Home": "\ue011", "Tab": "\ue004"}
WAIT_S = 120

# Code of a test, behind the work that the page does in slices (page/slices.js).
SETTLED = """const given = arguments;
return (async () => {
    if (typeof app !== "undefined" && app.settled) await app.settled();
    return (function () { %s
    }).apply(null, given);
})()"""


class Browser:
    def __init__(self, width=1280, height=800, dark=False, user=None):
        """USER: the id of the user to run it as."""
        self.size = (width, height)
        self.dark = dark
        self.user = user
        # The folder of the tests is for their own user only.
        self.folder = tempfile.mkdtemp(prefix="chromium-", dir=None if user is None else "/tmp")
        if user is not None:
            os.chown(self.folder, user, user)
        self.driver = self.base = None

    def __enter__(self):
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        try:
            if self.base:
                self._call("DELETE", "")
        except (OSError, ValueError, AssertionError):
            pass
        if self.driver:
            self._end_driver()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _start(self):
        # Chromium writes below HOME and TMPDIR too, so it gets one of its own.
        env = dict(os.environ, HOME=self.folder, TMPDIR=self.folder, XDG_CONFIG_HOME=self.folder,
                   XDG_CACHE_HOME=self.folder)
        self.base = "http://127.0.0.1:%d/session" % self._start_driver(env)
        flags = FLAGS + ["--user-data-dir=" + os.path.join(self.folder, "data"),
                         "--window-size=%d,%d" % self.size]
        chrome = {"args": flags, "prefs": {"download.default_directory": self.folder}}
        always = {"browserName": "chrome", "goog:chromeOptions": chrome,
                  "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"}}
        session = self._call("POST", "", {"capabilities": {"alwaysMatch": always}})
        self.base += "/" + session["sessionId"]
        self.theme("dark" if self.dark else "light")
        self.resize(*self.size)
        self.devtools("Browser.setDownloadBehavior", behavior="allow", downloadPath=self.folder)

    def _start_driver(self, env):
        """Returns its port. It chooses one that is free for IPv4, and ends if another program has that one for IPv6."""
        while True:
            self.driver = subprocess.Popen(["chromedriver", "--port=0"], stdin=subprocess.DEVNULL,
                                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env,
                                           start_new_session=True, cwd="/", user=self.user, group=self.user)
            said = b""
            for line in self.driver.stdout:
                said += line
                if b"started successfully on port" in line:
                    return int(line.split()[-1].rstrip(b"."))
            assert b"port not available" in said, "chromedriver did not start: %s" % said.decode(errors="replace")
            self._end_driver()

    def _end_driver(self):
        try:
            os.killpg(self.driver.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.driver.wait()
        self.driver.stdout.close()

    def _call(self, method, path, body=None):
        data = json.dumps(body or {}).encode() if method == "POST" else None
        request = urllib.request.Request(self.base + path, data, {"Content-Type": "application/json"},
                                         method=method)
        try:
            with urllib.request.urlopen(request, timeout=300) as r:
                return json.loads(r.read())["value"]
        except urllib.error.HTTPError as e:
            raise AssertionError(json.loads(e.read())["value"]["message"]) from None

    # ---- for tests -------------------------------------------------------------------------
    def devtools(self, command, **parameters):
        return self._call("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def resize(self, width, height):
        """Sets the size of the page itself, even below the minimum width of a window."""
        self.devtools("Emulation.setDeviceMetricsOverride", width=width, height=height,
                      deviceScaleFactor=1, mobile=False)

    def theme(self, name):
        """Sets the system's color scheme, `dark` or `light`."""
        self.devtools("Emulation.setEmulatedMedia",
                      features=[{"name": "prefers-color-scheme", "value": name}])

    def open(self, url):
        self._call("POST", "/url", {"url": url})

    def js(self, code, *arguments):
        """What CODE returns, run once the page shows what it was asked for, perhaps tasks ago."""
        return self.js_now(SETTLED % code, *arguments)

    def js_now(self, code, *arguments):
        return self._call("POST", "/execute/sync", {"script": code, "args": list(arguments)})

    def wait(self, code, *arguments, seconds=WAIT_S):
        """Waits until CODE is true; returns its value, or its last one at the timeout."""
        end = time.monotonic() + seconds
        while True:
            value = self.js(code, *arguments)
            if value or time.monotonic() > end:
                return value
            time.sleep(0.05)

    def keys(self, *keys):
        """Presses keys one after the other at the focus."""
        actions = []
        for key in keys:
            for kind in ("keyDown", "keyUp"):
                actions.append({"type": kind, "value": KEYS.get(key, key)})
        self._call("POST", "/actions", {"actions": [{"type": "key", "id": "k", "actions": actions}]})

    def drag(self, selector, start, end):
        """Drags over the element from START to END, fractions of its width."""
        box = self.js("const b = document.querySelector(arguments[0]).getBoundingClientRect();"
                      "return [b.left, b.top, b.width, b.height]", selector)
        at = [{"type": "pointerMove", "duration": 0, "x": round(box[0] + box[2] * share),
               "y": round(box[1] + box[3] / 2)} for share in (start, (start + end) / 2, end)]
        steps = [at[0], {"type": "pointerDown", "button": 0}, at[1], at[2],
                 {"type": "pointerUp", "button": 0}]
        self._call("POST", "/actions", {"actions": [
            {"type": "pointer", "id": "m", "parameters": {"pointerType": "mouse"}, "actions": steps}]})

    def click_at(self, selector, x, y):
        """Clicks X and Y pixels from the element's upper left corner."""
        box = self.js("const b = document.querySelector(arguments[0]).getBoundingClientRect();"
                      "return [b.left, b.top]", selector)
        self._call("POST", "/actions", {"actions": [
            {"type": "pointer", "id": "m", "parameters": {"pointerType": "mouse"}, "actions": [
                {"type": "pointerMove", "duration": 0, "x": round(box[0] + x), "y": round(box[1] + y)},
                {"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}]}]})

    def point_at(self, selector, x, y):
        """Moves the pointer to X and Y pixels from the element's upper left corner."""
        box = self.js("const b = document.querySelector(arguments[0]).getBoundingClientRect();"
                      "return [b.left, b.top]", selector)
        self._call("POST", "/actions", {"actions": [
            {"type": "pointer", "id": "m", "parameters": {"pointerType": "mouse"}, "actions": [
                {"type": "pointerMove", "duration": 0, "x": round(box[0] + x), "y": round(box[1] + y)}]}]})

    def click(self, selector):
        self.js("document.querySelector(arguments[0]).click()", selector)

    def choose(self, selector, value):
        """Chooses an option of a select, with the events of a user's choice."""
        self.js("const s = document.querySelector(arguments[0]); s.value = arguments[1];"
                "s.dispatchEvent(new Event('change', { bubbles: true }))", selector, value)

    def type(self, selector, text):
        self.js("const i = document.querySelector(arguments[0]); i.value = arguments[1];"
                "i.dispatchEvent(new Event('input', { bubbles: true }))", selector, text)

    def text(self, selector):
        return self.js("return document.querySelector(arguments[0]).textContent", selector)

    def screenshot(self, path):
        with open(path, "wb") as f:
            f.write(base64.b64decode(self._call("GET", "/screenshot")))

    def log(self):
        """Console messages since the last call, including errors and CSP violations."""
        return [e["level"] + " " + e["message"] for e in self._call("POST", "/se/log", {"type": "browser"})]

    def requests(self):
        """The addresses requested since the last call, including refused ones."""
        entries = [json.loads(e["message"])["message"] for e in
                   self._call("POST", "/se/log", {"type": "performance"})]
        return [e["params"]["request"]["url"] for e in entries
                if e["method"] == "Network.requestWillBeSent"]

    def downloaded(self):
        """The path of the downloaded file, once it is complete."""
        end = time.monotonic() + WAIT_S
        while time.monotonic() < end:
            names = [n for n in os.listdir(self.folder) if n.endswith(".pb.gz")]
            if names:
                return os.path.join(self.folder, names[0])
            time.sleep(0.05)
        raise AssertionError("nothing was downloaded")
