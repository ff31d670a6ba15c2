// SPDX-License-Identifier: Apache-2.0

// Gostarts has goroutines that were started in several places, by goroutines that live and by some
// that have ended:
//
//	gostarts [SECONDS]
//
// Each long-lived goroutine prints what the runtime's own traceback says about it, `GOID FUNCTION
// FILE:LINE PARENT` (PARENT is 0 before Go 1.21, which does not say), then `ready` follows, and it runs
// until it is killed or the time is up. Garbage and a list keep the collector busy, and short-lived
// goroutines come and go all the time, started by main.churn.
package main

import (
	"fmt"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"sync"
	"time"
)

var (
	sink  uint64
	kept  [64][]byte
	list  *node
	ready sync.WaitGroup
	told  sync.Mutex
	trace = regexp.MustCompile(`(?s)^goroutine (\d+) .*\ncreated by (\S+)(?: in goroutine (\d+))?\n\t(\S+)`)
)

// What each collection has to follow.
type node struct{ next *node }

func lengthen(count int) {
	for i := 0; i < count; i++ {
		list = &node{list}
	}
}

//go:noinline
func mix(x uint64) uint64 {
	for i := 0; i < 2000; i++ {
		x = x*6364136223846793005 + 1442695040888963407
		x ^= x >> 29
	}
	return x
}

func tell() {
	var text [8192]byte

	m := trace.FindStringSubmatch(string(text[:runtime.Stack(text[:], false)]))
	if m == nil {
		panic("the traceback does not say who created the goroutine")
	}
	if m[3] == "" {
		m[3] = "0"
	}
	told.Lock()
	fmt.Println(m[1], m[2], m[4], m[3])
	told.Unlock()
	ready.Done()
}

//go:noinline
func work() {
	tell()
	for x := uint64(1); ; x++ {
		for i := 0; i < 50; i++ {
			sink += mix(x)
		}
		kept[x%uint64(len(kept))] = make([]byte, 4096+int(x%65536))
		if x%16 == 0 {
			_, _ = os.Stat("/nonexistent")
			runtime.Gosched()
		}
	}
}

//go:noinline
func serve(count int) {
	for i := 0; i < count; i++ {
		go work()
	}
}

type server struct{ count int }

func (s *server) accept() {
	for i := 0; i < s.count; i++ {
		go func() { work() }()
	}
}

// Its goroutine ends at once: that of its children names it all the same.
func spawner() {
	go work()
}

func churn() {
	tell()
	for x := uint64(1); ; x++ {
		done := make(chan bool)
		go func() {
			sink += mix(x)
			done <- true
		}()
		<-done
	}
}

func main() {
	lengthen(60000)
	ready.Add(6)
	serve(2)
	(&server{2}).accept()
	go spawner()
	go churn()
	ready.Wait()
	fmt.Println("ready")
	seconds := 1 << 20
	if len(os.Args) > 1 {
		seconds, _ = strconv.Atoi(os.Args[1])
	}
	time.Sleep(time.Duration(seconds) * time.Second)
}
