# SPDX-License-Identifier: Apache-2.0
"""`fathom agent` as the scenario tests run it: its log, its HTTP side, its store."""
import calendar
import http.client
import socket
import threading
import time

from fathom import *
from unix_http import UnixConnection

# After a change of user, a Python installed below /root can no longer load this codec.
"".encode("idna")

WAIT_S = 60  # after this time an expected event counts as missing


def wait_until(condition, what, seconds=WAIT_S, pause=.02):
    """Polls, for conditions without an event."""
    end = time.monotonic() + seconds
    while True:
        result = condition()
        if result:
            return result
        if time.monotonic() > end:
            stop("waited %d s until %s" % (seconds, what))
        time.sleep(pause)


Answer = collections.namedtuple("Answer", "status headers body")


class Agent:
    """Started with windows of a second and a store of its own, or with ARGUMENTS and nothing else;
    `with` ends it. STORE "" is none."""

    def __init__(self, *options, store=None, http="127.0.0.1:0", wrapper=(), cache=None, env=None,
                 arguments=None):
        self.store = scratch("store") if store is None else store
        self.lines, self.changed = [], threading.Condition()
        self.http = http
        arguments = arguments or ["--http-address=" + http, "--http-socket=",
                                  "--local-store-directory=" + self.store,
                     "--log-level=info", "--cpu-budget=0",
                                  "--profiling-duration=1s", *options]
        self.process = subprocess.Popen(
            [*wrapper, FATHOM, "agent", *map(str, arguments)], stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE, env=dict(environment(cache), **(env or {})))
        self.pid = self.process.pid
        self.reader = threading.Thread(target=self.read_log, daemon=True)
        self.reader.start()
        try:
            started = self.wait_log(r'msg="sampling".*')
        except BaseException:
            self.process.kill()
            raise
        port = re.search(r"port=(\d+)", started)
        self.port = int(port.group(1)) if port else None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill(signal.SIGKILL)

    def read_log(self):
        for line in self.process.stderr:
            with self.changed:
                self.lines.append(line.decode(errors="replace").rstrip("\n"))
                self.changed.notify_all()
        with self.changed:
            self.lines.append(None)
            self.changed.notify_all()

    def log(self):
        with self.changed:
            return "\n".join(line for line in self.lines if line)

    def wait_log(self, pattern, after=0):
        """The first line from number AFTER on in which PATTERN is found."""
        end = time.monotonic() + WAIT_S
        with self.changed:
            while True:
                for line in self.lines[after:]:
                    if line is not None and re.search(pattern, line):
                        return line
                ended = self.lines and self.lines[-1] is None
                if ended or not self.changed.wait(end - time.monotonic()):
                    break
        stop("no /%s/ in the log%s:\n%s" % (pattern, " of an agent that ended" * bool(ended), self.log()))

    def log_lines(self):
        with self.changed:
            return len(self.lines)

    def signal(self, number):
        self.process.send_signal(number)

    def kill(self, number):
        """Sends the signal and waits for the end. Returns the exit status."""
        if self.process.poll() is None:
            self.process.send_signal(number)
            try:
                self.process.wait(WAIT_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                stop("signal %d does not end the agent" % number)
        self.reader.join()
        return self.process.returncode

    def ask(self, path, method="GET", headers=None, uid=None):
        """A connection of the user UID, who owns the socket from its creation on."""
        if self.http.startswith("unix:"):
            connection = UnixConnection(self.http[len("unix:"):], WAIT_S)
        else:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=WAIT_S)
        try:
            if uid is not None:
                os.seteuid(uid)
                try:
                    connection.connect()
                finally:
                    os.seteuid(0)
            connection.request(method, path, headers=headers or {})
            answer = connection.getresponse()
            return Answer(answer.status, answer.headers, answer.read())
        except (ConnectionError, TimeoutError) as error:
            time.sleep(1)  # it may be ending
            error.add_note("agent %d: status %s; its log:\n%s" % (self.pid, self.process.poll(), self.log()[-3000:]))
            raise
        finally:
            connection.close()

    def url(self, path):
        return "http://127.0.0.1:%d%s" % (self.port, path)

    def status(self):
        return json.loads(self.ask("/status").body)

    def metrics(self):
        """{`name{labels}`: value}, parsed strictly."""
        return read_openmetrics(self.ask("/metrics").body.decode())

    def stored(self):
        """The store's list: [{path, name, time_ms, duration_ms, bytes}], oldest first."""
        answer = self.ask("/api/profiles")
        if answer.status != 200:
            stop("the list of profiles: %d %r" % (answer.status, answer.body))
        return json.loads(answer.body)

    def stored_with(self, group):
        """Those of the list in which GROUP has samples, and only windows as they were written."""
        return [p for p in self.stored()
                if of_group(read_profile(os.path.join(self.store, p["path"])), group)]

    def wait_windows(self, count):
        """Waits until COUNT more windows are sealed."""
        first = self.status()["windows"]
        wait_until(lambda: self.status()["windows"] >= first + count, "%d windows end" % count)


def files_of(store):
    """Paths below the store, hidden ones included."""
    return sorted(os.path.relpath(os.path.join(folder, name), store)
                  for folder, _, names in os.walk(store) for name in names)


def of_group(profile, name):
    """The samples of a stored profile's process group."""
    return [s for s in profile.samples if s["labels"].get("fathom_group") == name]


def seconds_of(path):
    """(start since 1970, length) of a stored file, from its name."""
    m = re.search(r"(\d{8}T\d{6})(\.\d)?Z-([\d.]+)s[-.]", os.path.basename(path))
    start = calendar.timegm(time.strptime(m.group(1), "%Y%m%dT%H%M%S")) + float(m.group(2) or 0)
    return start, float(m.group(3))


# ---- OpenMetrics 1.0, strictly -------------------------------------------------------------------
NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*"'
SAMPLE = re.compile(r"(%s)(\{%s(?:,%s)*\})? (NaN|[+-]Inf|[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)" % (NAME, LABEL, LABEL))
SUFFIXES = {"counter": ("_total", "_created"), "gauge": ("",), "info": ("_info",),
            "histogram": ("_bucket", "_count", "_sum", "_created")}


class NotOpenMetrics(Exception):
    pass


def read_openmetrics(text):
    """{`name{labels}`: value}; NotOpenMetrics at the first line that is wrong."""
    def need(condition, why, line):
        if not condition:
            raise NotOpenMetrics("%s: %r" % (why, line))

    need(text.endswith("# EOF\n"), "no # EOF at the end", text[-40:])
    values, families, family, kind = {}, set(), None, None
    for line in text.splitlines()[:-1]:
        m = re.fullmatch(r"# (TYPE|HELP|UNIT) (%s) (.+)" % NAME, line)
        if m and m.group(2) != family:
            family = m.group(2)
            need(family not in families, "a family in two places", line)
            families.add(family)
            kind = "unknown"
        if m:
            if m.group(1) == "TYPE":
                kind = m.group(3)
                need(kind in SUFFIXES, "unknown type", line)
            continue
        need(not line.startswith("#"), "neither TYPE, HELP nor UNIT", line)
        m = SAMPLE.fullmatch(line)
        need(m, "no sample", line)
        need(family and m.group(1) in [family + s for s in SUFFIXES.get(kind, ("",))],
             "not of the family %s (%s)" % (family, kind), line)
        key = m.group(1) + (m.group(2) or "")
        need(key not in values, "the same sample twice", line)
        values[key] = float(m.group(3))
        need(kind != "counter" or values[key] >= 0, "a counter below zero", line)
    return values
