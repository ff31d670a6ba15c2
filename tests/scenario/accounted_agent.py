# SPDX-License-Identifier: Apache-2.0
"""An agent whose samples are accounted for: those in its stored profiles, those it counted as lost,
and those that the kernel delivered, which the BPF program's own counter says."""
import bpf_map
from agent import *
from bpf_map import BPF_ERROR, COUNTS, RING_FULL, TAKEN


class AccountedAgent(Agent):
    """HZ and WINDOW are the agent's; store and socket are its own, the cache is the common one."""

    def __init__(self, *arguments, window="1s", hz=99, cache=None):
        home = tempfile.mkdtemp(dir=SCRATCH, prefix="agent-")
        self.cache = cache or os.path.join(CACHE, "fathom")
        self.final = {}
        super().__init__("--profiling-cpu-sampling-frequency=%d" % hz, "--profiling-duration=" + window,
                         "--cache-directory=" + self.cache, *map(str, arguments),
                         store=os.path.join(home, "store"),
                         http="unix:" + os.path.join(home, "http"), cache=cache)
        self.counts = bpf_map.PerCpuArray(self.pid, COUNTS)

    def __exit__(self, *_):
        super().__exit__()
        self.counts.close()

    def metric(self, name):
        """The sum of a metric's series."""
        return total(self.metrics(), name)

    def delivered(self):
        """Samples that the sampler took, counted in the kernel: all end in a profile or are lost."""
        return self.counts.sums()[TAKEN]

    def lost_in_kernel(self):
        """Of those, what no ring had room for."""
        sums = self.counts.sums()
        return sums[RING_FULL] + sums[BPF_ERROR]

    def stop(self, just_before=lambda: None):
        """SIGTERM. `final` are the last metrics before it: they tell all that was lost until then."""
        lost = self.lost_in_kernel()
        wait_until(lambda: lost_metric(self.metrics(), KERNEL_REASONS) >= lost, "losses are told")
        self.final = self.metrics()
        just_before()
        status = self.kill(signal.SIGTERM)
        check(status == 0, "the agent ends by itself: status %d" % status)

    def files(self):
        return [os.path.join(self.store, f) for f in files_of(self.store) if f.endswith(".pb.gz")]

    def samples(self, without=()):
        """Of all stored profiles, or of those that are not in the list WITHOUT."""
        return [s for path in self.files() if path not in without for s in read_profile(path).samples]

    def wait_names(self):
        """Until all programs that run now have their names, however long their indexes take to be
        built. Returns the files before that."""
        self.wait_windows(1)
        wait_until(lambda: self.status()["index_builds_pending"] == 0, "all indexes are built", 120)
        self.wait_windows(1)
        return self.files()

    def check_nothing_silently_lost(self):
        """After stop(): what the kernel delivered is in the stored profiles or counted as lost."""
        stored, delivered = weight(self.samples()), self.delivered()
        # A slow machine loses some after the last look at the metrics, too.
        lost = self.lost_in_kernel() + lost_metric(self.final) - lost_metric(self.final, KERNEL_REASONS)
        check(stored + lost == delivered, "%d samples stored and %d counted as lost of %d delivered"
              % (stored, lost, delivered))
        for name in ("fathom_local_store_failed_total", "fathom_table_refused_total"):
            check(total(self.final, name) == 0, "%s: %s" % (name, {
                k: v for k, v in self.final.items() if k.startswith(name) and v} or 0))
        return stored


def prepare(*programs):
    """Their indexes are in the common cache then: where it does not matter that they are new."""
    for program in programs:
        r = fathom("symbolize", "--cache-directory", os.path.join(CACHE, "fathom"), "-e", program)
        if r.status:
            stop("symbolize -e %s: %s" % (program, r.stderr))


KERNEL_REASONS = ('reason="ring_full"', 'reason="bpf_error"')


def lost_metric(metrics, reasons=("",)):
    """Samples lost for one of REASONS, as the agent tells."""
    return sum(v for k, v in metrics.items() if k.startswith("fathom_samples_lost_total") and
               any(r in k for r in reasons))


def total(metrics, name):
    return sum(v for k, v in metrics.items() if k.split("{")[0] == name)
