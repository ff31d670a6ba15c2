// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/prometheus/prometheus/model/labels"
)

// What makes an alert fire: the series of METRIC with these labels have a value, or grow by that each step.
// A value of label NEW replaces the one of that name (the real agent met no such case).
type change struct {
	metric      string
	match       map[string]string
	value, each *float64
	name, new   string
}

func number(v float64) *float64 { return &v }

var breaks = map[string][]change{
	"FathomDown":            {{metric: "up", value: number(0)}},
	"FathomNoSamples":       {{metric: "fathom_samples_total", each: number(0)}},
	"FathomWindowsStuck":    {{metric: "fathom_windows_total", each: number(0)}},
	"FathomSamplesLost":     {{metric: "fathom_samples_lost_total", match: map[string]string{"reason": "ring_full"}, each: number(1e5)}},
	"FathomSlowedDown":      {{metric: "fathom_effective_frequency_hertz", value: number(1)}},
	"FathomMemoryShort":     {{metric: "fathom_memory_pressure_total", match: map[string]string{"action": "end_window"}, each: number(1)}},
	"FathomSendFailing":     {{metric: "fathom_remote_write_requests_total", each: number(1), name: "code", new: "503"}},
	"FathomSendDropped":     {{metric: "fathom_remote_write_dropped_total", match: map[string]string{"reason": "spool_full"}, each: number(1)}},
	"FathomSpoolOld":        {{metric: "fathom_spool_oldest_seconds", value: number(7200)}},
	"FathomStoreFailing":    {{metric: "fathom_local_store_failed_total", each: number(1)}},
	"FathomBuildsCrash":     {{metric: "fathom_index_builds_total", match: map[string]string{"result": "crash"}, each: number(1)}},
	"FathomStacksTruncated": {{metric: "fathom_stacks_total", match: map[string]string{"state": "truncated"}, each: number(1e6)}},
}

// The first seconds of an agent that has no indexes yet, on a machine that builds programs, are not how it
// goes on: stacks that wait for their tables, and samples lost meanwhile.
var settled = []change{
	{metric: "fathom_stacks_total", match: map[string]string{"state": "truncated"}, each: number(0)},
	{metric: "fathom_samples_lost_total", each: number(0)},
}

func (c change) applies(one series) bool {
	if one.labels.Get("__name__") != c.metric {
		return false
	}
	for name, value := range c.match {
		if one.labels.Get(name) != value {
			return false
		}
	}
	return true
}

// ALL with these changes, and how many series they were.
func changed(all []series, changes []change) ([]series, int) {
	var out []series
	count := 0
	for _, one := range all {
		for _, c := range changes {
			if !c.applies(one) {
				continue
			}
			count++
			if c.value != nil {
				one.last = *c.value
			}
			if c.each != nil {
				one.each = *c.each
			}
			if c.new != "" {
				one.labels = labels.NewBuilder(one.labels).Set(c.name, c.new).Labels()
			}
		}
		out = append(out, one)
	}
	return out, count
}
