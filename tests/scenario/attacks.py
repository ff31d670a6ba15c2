# SPDX-License-Identifier: Apache-2.0
"""What goes on beside an agent in the soak: each attack is a thread that repeats itself until told to stop."""
import errno
import random

from flood import Flood
from hanging import *

TWIN = ("gcc -O2 -g -fomit-frame-pointer -fno-optimize-sibling-calls -DTWIN=%d "
        "-Wl,--build-id=0xf0f1aa2233445566778899aabbccddeeff0011aa -o {out} {source}")
ZERO_BYTES = 128 << 20
twins = {n: built("twin.c", "soak-twin-%d" % n, TWIN % n) for n in (1, 2)}


def launched(*argv, **options):
    """A program that was just written. A child of another thread that has not executed its own program yet
    has the file open for writing, too."""
    for _ in range(100):
        try:
            return subprocess.Popen(argv, stdout=subprocess.DEVNULL, **options)
        except OSError as error:
            if error.errno != errno.ETXTBSY:
                raise
            time.sleep(.02)
    stop("%s stays busy" % argv[0])


class Attack(threading.Thread):
    """`with` repeats round() until its end. What goes wrong there fails the test."""
    pause_s = 1

    def __init__(self):
        super().__init__(daemon=True)
        self.over, self.rounds, self.error = threading.Event(), 0, None
        self.folder = tempfile.mkdtemp(dir=SCRATCH, prefix="attack-")

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.join()
        self.undo()
        check(self.rounds and not self.error, "%s: %d rounds, %s" %
              (type(self).__name__, self.rounds, self.error or "no error"))

    def run(self):
        while not self.over.wait(self.pause_s):
            try:
                self.round()
                self.rounds += 1
            except (OSError, SystemExit, subprocess.SubprocessError) as error:
                self.error = repr(error)

    def undo(self):
        """Leaves the machine as it was."""

    def runs_briefly(self, path):
        """A program that runs for so long that it is sampled, and is deleted."""
        p = launched(path, "10", preexec_fn=lambda: os.nice(10))
        has_run, end = ran(p.pid, seconds=.2), time.monotonic() + WAIT_S
        while not self.over.wait(.2) and not has_run() and time.monotonic() < end:
            pass
        os.unlink(path)
        p.kill()
        p.wait()


class HangingMount(Attack):
    """A file system that stops answering and comes back, with always new programs on it."""

    def __init__(self):
        super().__init__()
        self.files = HangingFiles("all")

    def round(self):
        victim = self.files.start(self.files.add(fresh(chain, "victim", self.folder), "victim"), 1000)
        os.setpriority(os.PRIO_PROCESS, victim.pid, 10)
        pause(victim)
        self.files.hang()
        go_on(victim)
        self.over.wait(5)
        self.files.release()
        self.over.wait(2)
        self.files.programs.remove(victim)
        victim.__exit__()

    def undo(self):
        self.files.__exit__()


class Bombs(Attack):
    """Programs with debug sections of zeros that are large only when decompressed, or with wrong bytes."""

    def __init__(self):
        super().__init__()
        zeros, bare = scratch("zeros"), scratch("bare")
        with open(zeros, "wb") as f:
            f.truncate(ZERO_BYTES)
        self.bomb, self.numbers = scratch("bomb"), random.Random(1)
        for command in (["strip", "-g", "-o", bare, chain],
                        ["objcopy", "--compress-debug-sections=zlib", "--add-section", ".debug_info=" + zeros,
                         "--add-section", ".debug_abbrev=" + zeros, bare, self.bomb]):
            subprocess.run(command, check=True)
        os.unlink(zeros)

    def round(self):
        self.runs_briefly(fresh(self.bomb, "bomb", self.folder))
        broken = fresh(chain, "broken", self.folder)
        start, end = self.debug_bytes(broken)
        with open(broken, "r+b") as f:
            for _ in range(200):
                f.seek(self.numbers.randrange(start, end))
                f.write(bytes([self.numbers.randrange(256)]))
        self.runs_briefly(broken)

    @staticmethod
    def debug_bytes(path):
        """The file range of its debug sections."""
        text = subprocess.run(["readelf", "-SW", path], capture_output=True, text=True, check=True).stdout
        ranges = [(int(off, 16), int(off, 16) + int(size, 16)) for off, size in
                  re.findall(r"\] \.debug\S* +\S+ +[0-9a-f]+ ([0-9a-f]+) ([0-9a-f]+)", text)]
        return min(ranges)[0], max(ranges)[1]


class Twins(Attack):
    """Two programs with different code and the same build ID, by turns."""

    def round(self):
        for n in twins:
            self.runs_briefly(shutil.copy(twins[n], os.path.join(self.folder, "soak-twin-%d" % n)))


class KilledBuilders(Attack):
    """SIGKILL for the index builders of the agent, one after the other; others end in between, however slow
    the machine is."""
    pause_s = .5
    between = 2

    def __init__(self, agent):
        super().__init__()
        self.agent, self.killed = agent, 0

    def round(self):
        for pid in builders(self.agent.pid):
            try:
                os.kill(pid, signal.SIGKILL)
                self.killed += 1
            except ProcessLookupError:
                pass  # it is done
            self.over.wait(1)
            self.let_others_end()

    def let_others_end(self):
        def built():
            return self.agent.metrics()['fathom_index_builds_total{result="ok"}']

        before, end = built(), time.monotonic() + WAIT_S
        while built() < before + self.between and time.monotonic() < end and not self.over.wait(.5):
            pass

    def undo(self):
        check(self.killed, "%d index builders killed" % self.killed)


class Hotplug(Attack):
    """The machine's last CPU goes away and comes back."""
    pause_s = 5

    def round(self):
        for on in (0, 1):
            self.switch(on)
            self.over.wait(2)

    def undo(self):
        self.switch(1)

    @staticmethod
    def switch(on):
        with open("/sys/devices/system/cpu/cpu%d/online" % (os.sysconf("SC_NPROCESSORS_CONF") - 1), "w") as f:
            f.write("%d" % on)


def builders(pid):
    """The index builders among the children of a process."""
    found = []
    with open("/proc/%d/task/%d/children" % (pid, pid)) as f:
        for child in f.read().split():
            try:
                with open("/proc/%s/cmdline" % child, "rb") as c:
                    if b"index-module" in c.read():
                        found.append(int(child))
            except OSError:
                pass
    return found


def all_attacks(agent):
    """Context managers, one for each attack."""
    return [HangingMount(), Bombs(), Twins(), KilledBuilders(agent), Flood(agent.port, nice=19),
            *([Hotplug()] if os.environ.get("FATHOM_TEST_HOTPLUG") else [])]
