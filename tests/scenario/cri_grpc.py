#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A container runtime's gRPC server, by another implementation of gRPC than ours: cri_grpc.py SOCKET.

Reads commands from stdin, a JSON object a line, and prints a line for each call it gets.
    {"answers": {METHOD: BASE64}}   what a method answers from now on
    {"mode": {METHOD: MODE}}        ok, hang (no answer until the mode changes), refuse
    {"event": BASE64}               one message of the stream of events
"""
import base64
import json
import queue
import sys
import threading
from concurrent import futures

import grpc

answers, modes = {}, {}
changed = threading.Condition()
said_lock = threading.Lock()
streams = []


def said(method):
    """A whole line, whichever other threads write one."""
    with said_lock:
        print("called " + method, flush=True)


def unary(method):
    def answer(_, context):
        said(method)
        with changed:
            changed.wait_for(lambda: modes.get(method) != "hang" or not context.is_active())
            mode, body = modes.get(method), answers.get(method, b"")
        if mode == "refuse":
            context.abort(grpc.StatusCode.UNAVAILABLE, "not \x01 today")
        return body
    return grpc.unary_unary_rpc_method_handler(answer)


def events(_, context):
    said("GetContainerEvents")
    if modes.get("GetContainerEvents") == "refuse":
        context.abort(grpc.StatusCode.UNIMPLEMENTED, "unknown method")
    waiting = queue.Queue()
    streams.append(waiting)
    context.add_callback(lambda: waiting.put(None))
    while True:
        event = waiting.get()
        if event is None:
            return
        yield event


def main():
    handlers = {m: unary(m) for m in ("Version", "ListContainers", "ListPodSandbox")}
    handlers["GetContainerEvents"] = grpc.unary_stream_rpc_method_handler(events)
    server = grpc.server(futures.ThreadPoolExecutor(32), options=[("grpc.max_send_message_length", -1)])
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler("runtime.v1.RuntimeService", handlers),))
    server.add_insecure_port("unix:" + sys.argv[1])
    server.start()
    print("ready", flush=True)
    for line in sys.stdin:
        command = json.loads(line)
        with changed:
            for method, text in command.get("answers", {}).items():
                answers[method] = base64.b64decode(text)
            modes.update(command.get("mode", {}))
            changed.notify_all()
        for waiting in streams if "event" in command else ():
            waiting.put(base64.b64decode(command["event"]))
    with changed:
        modes.clear()
        changed.notify_all()
    server.stop(0)


main()
