# SPDX-License-Identifier: Apache-2.0
"""File systems that stop answering (workloads/hangfs.c), the programs on them, and what an agent owes to
all others meanwhile."""
import select
import threading

from accounted_agent import *

WINDOWS = 5  # that an agent must end while files hang
# Whatever takes longer than this hangs; a busy machine needs some of it for anything.
HANG_S = 20
# Names may be asked for again after a quarter of a minute, and then they have to be built.
NAMES_S = 300
TIMED_OUT = "fathom_foreign_file_timeouts_total"
LOG = re.compile(r'^time=(\S+) level=warn .*does not answer.* path="([^"]*)"', re.M)
LOG_EVERY_S = 60
chain = built("chain.c")
profiles = {}


class HangingFiles:
    """A FUSE file system of its own mount namespace, at AT there. hang(): requests of KINDS are no longer
    answered, by processes of the name COMM if that is given. Leaving `with` kills its server, which ends everybody's waits, and then the programs on it: no
    process and no mount is left, whatever happened."""

    def __init__(self, kinds, at=None, comm=None):
        self.source = tempfile.mkdtemp(dir=SCRATCH, prefix="source-")
        os.chmod(self.source, 0o755)
        self.at = at or tempfile.mkdtemp(dir=SCRATCH, prefix="hangs-")
        self.server = Workload([built("hangfs.c"), self.source, self.at, kinds, *filter(None, [comm])])
        self.programs, self.kept, self.hangs = [], [], threading.Event()
        self.reader = threading.Thread(target=self.read_kept, daemon=True)
        self.reader.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.process.kill()
        for program in self.programs:
            program.__exit__()
        self.server.process.wait()
        self.reader.join()
        self.server.process.stdout.close()

    def read_kept(self):
        for line in self.server.process.stdout:
            words = line.decode().split()
            if words[0] == "kept":
                self.kept.append(words)
            else:
                self.hangs.set()

    def add(self, program, name=None):
        """Copies a program to the file system; returns its path there."""
        name = name or os.path.basename(program)
        shutil.copy(program, os.path.join(self.source, name))
        return os.path.join(self.at, name)

    def start(self, *argv):
        """A program in the file system's namespace, which ends with this test in any case."""
        enter = ("setpriv", "--pdeathsig", "KILL", "nsenter", "-m", "-t", str(self.server.pid))
        self.programs.append(Workload([*map(str, argv)], wrapper=enter))
        return self.programs[-1]

    def hang(self):
        """Returns when no later request is answered."""
        self.hangs.clear()
        self.server.process.send_signal(signal.SIGUSR1)
        if not self.hangs.wait(WAIT_S):
            stop("the file system goes on answering")

    def release(self):
        self.server.process.send_signal(signal.SIGUSR2)

    def waits(self, pid):
        """Whether the process, one of its own programs, was left without an answer."""
        return any(int(p) == pid for _, _, p in list(self.kept))

    def has(self, path):
        """Whether the agent means one of these files, or memory that is locked because of them."""
        process = re.match(r"/proc/(\d+)/", path)
        return bool(process and int(process[1]) in {w.pid for w in self.programs}) or (
            path.startswith(self.at + "/") and (self.at != "/tmp" or os.path.basename(path) in os.listdir(self.source)))

    def others_wait(self):
        """Whether somebody else than its own programs was left without an answer."""
        own = {w.pid for w in self.programs}
        return any(int(pid) not in own for _, _, pid in list(self.kept))


def fresh(program, name, folder=None):
    """A copy in SCRATCH with a build ID of its own, which no cache knows."""
    fresh.number = getattr(fresh, "number", time.time_ns() % (1 << 40)) + 1
    path = os.path.join(folder or SCRATCH, name)
    another_build(program, path, fresh.number)
    return path


def pause(*workloads):
    """Stops programs that have run long enough for their code to be in memory."""
    wait_until(ran(*(w.pid for w in workloads), seconds=.2), "the programs have run")
    for w in workloads:
        os.kill(w.pid, signal.SIGSTOP)


def go_on(*workloads):
    for w in workloads:
        os.kill(w.pid, signal.SIGCONT)


def says(workload, line, seconds=WAIT_S):
    """Whether LINE is the next one of the program's output. None may come for ever: the program ended, or
    what it is to do has failed."""
    ready, _, _ = select.select([workload.process.stdout], [], [], seconds)
    return bool(ready) and workload.process.stdout.readline() == line


class Answers(threading.Thread):
    """Asks the agent again and again, and keeps the longest time to an answer."""

    def __init__(self, agent):
        super().__init__(daemon=True)
        self.agent, self.over, self.longest, self.count = agent, threading.Event(), 0, 0

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.over.set()

    def run(self):
        while not self.over.wait(.1):
            began = time.monotonic()
            try:
                self.agent.ask("/metrics")
            except OSError:
                if self.over.is_set():
                    break
            self.longest = max(self.longest, time.monotonic() - began)
            self.count += 1


def is_running(pid):
    """Not gone, and no zombie."""
    try:
        with open("/proc/%s/stat" % pid) as f:
            return f.read().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def holds(condition, what, seconds=WAIT_S):
    """Waits for CONDITION and checks it; unlike wait_until, the test goes on without it, so that the files
    are released."""
    end = time.monotonic() + seconds
    result = condition()
    while not result and time.monotonic() < end:
        time.sleep(.05)
        result = condition()
    check(result, what)
    return result


def ends(files, *arguments, text=None):
    """Runs `fathom ARGUMENTS`, which must end although FILES hang; releases them if it does not."""
    with subprocess.Popen([FATHOM, *map(str, arguments)], env=environment(), stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as p:
        try:
            out, errors = p.communicate(text, timeout=WAIT_S)
            ended = True
        except subprocess.TimeoutExpired:
            ended = False
            for f in files:
                f.release()
            p.kill()
            out, errors = p.communicate()
    check(ended, "%s ends while files hang" % arguments[0])
    return Result(p.returncode, out, errors, None)


# ---- verdicts -------------------------------------------------------------------------------------
def samples_of(path, pid):
    if path not in profiles:
        profiles[path] = read_profile(path)
    return of_pid(profiles[path], pid)


def has_name(agent, pid, name, since=0):
    """Whether a window that began after SINCE has a sample of the process with that function."""
    return any(has_function(s, name) for path in agent.files() if seconds_of(path)[0] >= since
               for s in samples_of(path, pid))


def windows_since(agent, since):
    """{(start, seconds): its files} of the windows since then."""
    found = collections.defaultdict(list)
    for path in agent.files():
        if seconds_of(path)[0] >= since:
            found[seconds_of(path)].append(path)
    return found


def judge_windows(what, agent, innocent, since):
    """Each window since then has samples of the innocent program, and none is much longer than a second."""
    windows = windows_since(agent, since)
    windows.pop(max(windows))  # may not be written completely
    without = [start for (start, _), paths in windows.items() if not any(samples_of(p, innocent.pid) for p in paths)]
    check(not without, "%s: windows without samples of others: %s" % (what, without or "none"))
    longest = max([length for _, length in windows], default=0)
    check(longest < 1 + HANG_S, "%s: the longest of %d windows has %.1f s" % (what, len(windows), longest))


def judge_hanging(what, agent, innocent, asked_in_vain):
    """What must be so while files hang. ASKED_IN_VAIN tells whether the agent asked for all of them; None: it
    has no reason to."""
    since = time.time()
    with Answers(agent) as answers, Workload([fresh(chain, "newcomer"), "1000"]) as newcomer:
        went_on = holds(lambda: len(windows_since(agent, since)) > WINDOWS,
                        "%s: windows go on" % what)
        if not went_on:
            return
        holds(lambda: has_name(agent, newcomer.pid, "spin_here"), "%s: a newcomer elsewhere has its names" % what)
        if asked_in_vain:
            holds(asked_in_vain, "%s: the agent asked in vain" % what)
            holds(lambda: agent.metric(TIMED_OUT) > 0, "%s: the loss is counted" % what)
            holds(lambda: LOG.search(agent.log()), "%s: it is logged" % what)
    judge_windows(what, agent, innocent, since)
    check(answers.longest < HANG_S, "%s: the longest of %d answers took %.3f s" %
          (what, answers.count, answers.longest))
    profiles.clear()


def judge_log(what, agent, is_hanging, asked):
    """Each thing that hangs is logged once, and all of them together once a minute. IS_HANGING: path -> whether it
    is one of them. A file on a disk that is busy may be slow to answer, but it does."""
    log = agent.log()
    told = LOG.findall(log)
    paths = [path for _, path in told if is_hanging(path)]
    once = bool(paths) == asked and len(paths) == len(set(paths))
    check(once, "%s: it is logged once: %s" % (what, paths if once else log))
    others = [path for _, path in told if not is_hanging(path)]
    never = [path for path in others if not re.search(r'answers again.* path="%s"' % re.escape(path), log)]
    check(not never, "%s: %d other files were slow, %s did not answer" % (what, len(others), never or "none"))
    times = [calendar.timegm(time.strptime(t[:19], "%Y-%m-%dT%H:%M:%S")) for t, _ in told]
    check(all(b - a >= LOG_EVERY_S - 1 for a, b in zip(times, times[1:])),
          "%s: at most one line a minute: %s" % (what, [t for t, _ in told]))


def judge_released(what, agent, victims, name, is_hanging, asked=True):
    """What must be so once the files answer again. NAME: the function in which the victims are, None = not known."""
    since = time.time()
    for v in victims if name else ():
        holds(lambda: has_name(agent, v.pid, name, since), "%s: the names of %d are back" % (what, v.pid), NAMES_S)
    judge_log(what, agent, is_hanging, asked)
    agent.stop()
    agent.check_nothing_silently_lost()
    check(lost_metric(agent.final) == 0, "%s: no sample is lost" % what)
    profiles.clear()
