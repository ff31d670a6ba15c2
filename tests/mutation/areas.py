# SPDX-License-Identifier: Apache-2.0
"""The parts of the program that the mutation check reports separately.

An area has its files (patterns from the project's root; `!` excludes) and, where only the whole
program reveals a fault, short scenarios that run after the unit and BPF tests.
"""
import fnmatch

AREAS = {
    "pprof": (["pprof/*.c"], []),
    "symbolizer": (["symbolizer/*.c", "!symbolizer/index/*", "!symbolizer/indexer/*"], []),
    "index": (["symbolizer/index/*.c", "symbolizer/indexer/*.c", "!symbolizer/indexer/go/*"], []),
    "golang": (["symbolizer/indexer/go/*.c"], []),
    "profile, samples": (["agent/sampler/profile/*.c", "agent/sampler/samples/*.c"], []),
    "report": (["agent/report/*.c"], []),
    "process, unwind": (["agent/sampler/process/*.c", "agent/sampler/unwind/*.c"], []),
    "indexes, maps, memory": (["agent/sampler/module_indexes/*.c", "agent/sampler/jit_maps/*.c",
                               "agent/sampler/kernel_symbols/*.c", "agent/sampler/memory/*.c"], []),
    "store, serve": (["agent/server/store/*.c", "agent/server/serve/*.c"], []),
    "export": (["agent/server/export/*.c"], []),
    "base": (["base/*.c"], []),
    "collect": (["agent/sampler/collect/*.c"], ["02-c-chain", "08-labels"]),
    "daemon": (["agent/daemon/*.c"], ["36-agent-status", "32-agent-reload"]),
    "composition": (["agent/sampler/*.c", "!agent/sampler/*/*"],
                    ["02-c-chain", "05-short-lived", "08-labels"]),
    "loop": (["agent/loop/*.c"], []),
    "top": (["agent/top/*.c"], []),
    "latency": (["agent/latency/*.c", "agent/sampler/functions/*.c"], []),
    "commands": (["agent/commands/*.c", "agent/main.c"], ["01-usage", "22-symbolize", "27-manual-and-completion", "12-interrupt"]),
    "settings": (["agent/settings/*.c"],
                 ["01-usage", "27-manual-and-completion"]),
}


def matches(path, patterns):
    """fnmatch's `*` also matches slashes: `!a/*/*` excludes everything in folders below a/."""
    wanted = any(fnmatch.fnmatch(path, p) for p in patterns if not p.startswith("!"))
    return wanted and not any(fnmatch.fnmatch(path, p[1:]) for p in patterns if p.startswith("!"))


def files_of(area, paths):
    return [p for p in paths if matches(p, AREAS[area][0])]


def scenarios_of(area):
    return AREAS[area][1]
