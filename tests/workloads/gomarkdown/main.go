// SPDX-License-Identifier: Apache-2.0

// Gomarkdown renders FILE as HTML, TIMES times, and prints how much CPU time of its own that took (ns).
//
//	gomarkdown FILE TIMES [PROFILE]
//
// With PROFILE, the Go runtime writes its own CPU profile to that file.
package main

import (
	"fmt"
	"os"
	"runtime/pprof"
	"strconv"
	"syscall"

	"gitlab.com/golang-commonmark/markdown"
)

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func cpuTime() int64 {
	var usage syscall.Rusage
	must(syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return usage.Utime.Nano() + usage.Stime.Nano()
}

func main() {
	source, err := os.ReadFile(os.Args[1])
	must(err)
	times, err := strconv.Atoi(os.Args[2])
	must(err)
	if len(os.Args) > 3 {
		f, err := os.Create(os.Args[3])
		must(err)
		must(pprof.StartCPUProfile(f))
		defer pprof.StopCPUProfile()
	}
	fmt.Println("ready")
	begin := cpuTime()
	md := markdown.New(markdown.XHTMLOutput(true), markdown.Typographer(true), markdown.Linkify(true),
		markdown.Tables(true))
	bytes := 0
	for i := 0; i < times; i++ {
		bytes += len(md.RenderToString(source))
	}
	fmt.Println(cpuTime()-begin, bytes)
}
