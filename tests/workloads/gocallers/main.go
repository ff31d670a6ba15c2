// SPDX-License-Identifier: Apache-2.0

// Calls of work by known paths, on goroutines. At the end each is a line `CALLS INNER_NS OUTER_NS
// main.work;CALLER;…;ROOT GOID`: all its calls took at least what work itself saw (INNER), at most what its
// caller saw (OUTER), on that goroutine. main.held is inlined. The argument is how often.
package main

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"
)

type path struct {
	names               string
	calls, inner, outer int64
	goid                uint64
}

type worker struct {
	path path
	sink uint64
	call func() uint64
}

func goid() uint64 {
	var b [64]byte
	text := b[:runtime.Stack(b[:], false)]
	id, _ := strconv.ParseUint(string(bytes.Fields(text)[1]), 10, 64)
	return id
}

// Two returns.
//
//go:noinline
func (w *worker) work(n uint64) uint64 {
	began := time.Now()
	if n%3 == 0 {
		runtime.Gosched() // may come back on another thread
		w.path.inner += int64(time.Since(began))
		return n
	}
	for i := uint64(0); i < n; i++ {
		w.sink += i
	}
	w.path.inner += int64(time.Since(began))
	return w.sink
}

func (w *worker) held(n uint64) uint64 {
	return w.work(n) + 2
}

//go:noinline
func (w *worker) byHand(n uint64) uint64 {
	return w.work(n) + 1
}

//go:noinline
func (w *worker) byInlined(n uint64) uint64 {
	return w.held(n) * 3
}

// Its stack grows, and moves, before it calls.
//
//go:noinline
func (w *worker) byDepth(n uint64, depth int) uint64 {
	var room [512]byte
	room[n%512] = 1
	if depth > 1 {
		return w.byDepth(n, depth-1) + uint64(room[n%512])
	}
	return w.work(n) + uint64(room[n%512])
}

//go:noinline
func (w *worker) byClosure(n uint64) uint64 {
	w.call = func() uint64 { return w.work(n) + 5 }
	return w.call() + 1
}

func (w *worker) run(times int, one func(n uint64) uint64, done *sync.WaitGroup) {
	w.path.goid = goid()
	for i := 0; i < times; i++ {
		began := time.Now()
		w.sink += one(uint64(i % 60))
		w.path.outer += int64(time.Since(began))
		w.path.calls++
	}
	done.Done()
}

const depth = 20

func main() {
	times, _ := strconv.Atoi(os.Args[1])
	workers := [4]worker{}
	names := []string{"byHand", "held;byInlined", strings.TrimSuffix(strings.Repeat("byDepth;", depth), ";"), "byClosure.func1;byClosure"}
	ones := []func(n uint64) uint64{workers[0].byHand, workers[1].byInlined,
		func(n uint64) uint64 { return workers[2].byDepth(n, depth) + 1 }, workers[3].byClosure}
	var done sync.WaitGroup
	for i := range workers {
		done.Add(1)
		go workers[i].run(times, ones[i], &done)
	}
	done.Wait()
	for i := range workers {
		p := &workers[i].path
		chain := "main.(*worker).work"
		for _, name := range strings.Split(names[i], ";") {
			chain += ";main.(*worker)." + name
		}
		fmt.Println(p.calls, p.inner, p.outer, chain, p.goid)
	}
}
