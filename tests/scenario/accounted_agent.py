# SPDX-License-Identifier: Apache-2.0
"""An agent whose samples are accounted for: those in its stored profiles, those it counted as lost,
and those that the BPF program itself counted as delivered."""
import bpf_map
from agent import *
from bpf_map import BPF_ERROR, COUNTS, RING_FULL, TAKEN


class AccountedAgent(Agent):
    """HZ and WINDOW are the agent's settings; it has its own store and, unless
    HTTP is another address, socket, and the shared cache."""

    def __init__(self, *arguments, window="1s", hz=99, cache=None, http=None):
        home = tempfile.mkdtemp(dir=SCRATCH, prefix="agent-")
        self.cache = cache or os.path.join(CACHE, "fathom")
        self.final, self.taken, self.lost, self.undecided = {}, 0, 0, 0
        super().__init__("--profiling-cpu-sampling-frequency=%d" % hz, "--profiling-duration=" + window,
                         "--cache-directory=" + self.cache, *map(str, arguments),
                         store=os.path.join(home, "store"),
                         http=http or "unix:" + os.path.join(home, "http"), cache=cache)
        self.counts = bpf_map.PerCpuArray(self.pid, COUNTS)

    def __exit__(self, *_):
        super().__exit__()
        self.counts.close()

    def metric(self, name):
        """The sum of a metric's series."""
        return total(self.metrics(), name)

    def delivered(self):
        """Samples taken, counted in the kernel: each ends in a profile or is counted as lost."""
        return self.counts.sums()[TAKEN]

    def lost_in_kernel(self):
        """Samples for which a ring had no room."""
        sums = self.counts.sums()
        return sums[RING_FULL] + sums[BPF_ERROR]

    def stop(self, just_before=lambda: None):
        """Sends SIGTERM. `final` are the last metrics before it, with all losses until then."""
        lost = self.lost_in_kernel()
        wait_until(lambda: lost_metric(self.metrics(), KERNEL_REASONS) >= lost, "losses are told")
        self.final = self.metrics()
        just_before()
        status = self.kill(signal.SIGTERM)
        check(status == 0, "the agent ends by itself: status %d" % status)
        ended = re.search(r'msg="sampling ended" samples=(\d+) lost=(\d+) undecided=(\d+)', self.log())
        check(ended, "it says what it sampled: %s" % self.log()[-200:])
        self.taken, self.lost, self.undecided = map(int, ended.groups()) if ended else (0, 0, 0)

    def files(self):
        return [os.path.join(self.store, f) for f in files_of(self.store) if f.endswith(".pb.gz")]

    def samples(self, without=()):
        """Samples of all stored profiles, except those in the list WITHOUT."""
        return [s for path in self.files() if path not in without for s in read_profile(path).samples]

    def wait_names(self):
        """Waits until all programs that run now have their names, however long their index builds take.
        Returns the files written before that."""
        self.wait_windows(1)
        wait_until(lambda: self.status()["index_builds_pending"] == 0, "all indexes are built", 120)
        self.wait_windows(1)
        return self.files()

    def check_nothing_silently_lost(self):
        """After stop(): each sample delivered by the kernel is in a stored profile, counted as lost, or was
        left out because its container's pod was not known (of containers that others run here meanwhile)."""
        stored, delivered = weight(self.samples()), self.delivered()
        check(stored + self.lost + self.undecided == delivered,
              "%d samples stored of %d in profiles, %d counted as lost and %d as undecided, of %d delivered"
              % (stored, self.taken, self.lost, self.undecided, delivered))
        for name in ("fathom_local_store_failed_total", "fathom_table_refused_total"):
            check(total(self.final, name) == 0, "%s: %s" % (name, {
                k: v for k, v in self.final.items() if k.startswith(name) and v} or 0))
        return stored


def prepare(*programs):
    """Puts the indexes of PROGRAMS into the shared cache, for tests that are not about indexing."""
    for program in programs:
        r = fathom("symbolize", "--cache-directory", os.path.join(CACHE, "fathom"), "-e", program)
        if r.status:
            stop("symbolize -e %s: %s" % (program, r.stderr))


KERNEL_REASONS = ('reason="ring_full"', 'reason="bpf_error"')


def lost_metric(metrics, reasons=("",)):
    """Samples lost for one of REASONS, according to the agent."""
    return sum(v for k, v in metrics.items() if k.startswith("fathom_samples_lost_total") and
               any(r in k for r in reasons))


def total(metrics, name):
    return sum(v for k, v in metrics.items() if k.split("{")[0] == name)
