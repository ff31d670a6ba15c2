#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads OpenMetrics text from standard input with Prometheus' own parser, which refuses what is not
valid, and prints each sample as a line of JSON: [name, {label: value}, value].
"""
import json
import sys

from prometheus_client.openmetrics.parser import text_string_to_metric_families


def main():
    text = sys.stdin.buffer.read().decode("utf-8")
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = dict(sorted(sample.labels.items()))
            print(json.dumps([sample.name, labels, sample.value]))


if __name__ == "__main__":
    main()
