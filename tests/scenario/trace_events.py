# SPDX-License-Identifier: Apache-2.0
"""What the Trace Event Format (Google, "JSON Object Format") asks of a file, by its text."""
import collections
import decimal
import json

METADATA = {"process_name", "thread_name"}
TYPES = {"name": str, "ph": str, "pid": int, "tid": int, "args": dict}


def mistakes_of_event(event):
    """What is wrong with an event by itself."""
    found = ["%s is %r" % (key, event.get(key)) for key, kind in TYPES.items() if type(event.get(key)) is not kind]
    if event.get("ph") == "M":
        if event["name"] not in METADATA or type(event["args"].get("name")) is not str:
            found.append("metadata %s" % event)
    elif event.get("ph") == "X":
        found += ["%s is %r" % (key, event.get(key)) for key in ("ts", "dur")
                  if type(event.get(key)) not in (int, decimal.Decimal) or event[key] < 0]
    else:
        found.append("ph %r" % event.get("ph"))
    unknown = set(event) - set(TYPES) - {"ts", "dur"}
    return found + (["members %s" % unknown] if unknown else [])


def mistakes_of_track(events):
    """Events in the order of their beginnings, each within the one around it."""
    found, ends, last = [], [], 0
    for event in events:
        begin, end = event["ts"], event["ts"] + event["dur"]
        if begin < last:
            found.append("%s begins before the one above it" % event["name"])
        last = begin
        while ends and ends[-1] <= begin:
            ends.pop()
        if ends and end > ends[-1]:
            found.append("%s ends after the one around it" % event["name"])
        ends.append(end)
    return found


def read_trace_events(path):
    """The events that are calls, and what is wrong with the file."""
    with open(path, encoding="utf-8") as f:
        whole = json.load(f, parse_float=decimal.Decimal)
    mistakes = [] if whole.get("displayTimeUnit") in ("ms", "ns") else ["displayTimeUnit"]
    named, tracks = collections.defaultdict(set), collections.defaultdict(list)
    for event in whole["traceEvents"]:
        wrong = mistakes_of_event(event)
        mistakes += wrong
        if not wrong and event["ph"] == "M":
            named[event["pid"], event["tid"]].add(event["name"])
        elif not wrong:
            tracks[event["pid"], event["tid"]].append(event)
    for track, events in tracks.items():
        mistakes += ["%s has no name" % (track,)] if named[track] != METADATA else []
        mistakes += mistakes_of_track(events)
    return [event for events in tracks.values() for event in events], mistakes
