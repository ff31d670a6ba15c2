// SPDX-License-Identifier: Apache-2.0

// Functions that count and time their own calls. At the end each is a line `NAME CALLS INNER_NS
// OUTER_NS ABANDONED`: a call takes at least what the function itself saw (INNER), at most what its
// caller saw (OUTER); ABANDONED calls never returned.
package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

type truth struct{ calls, inner, outer, abandoned uint64 }

var start = time.Now()

func now() uint64 { return uint64(time.Since(start)) }

var (
	quickTruth, growsTruth, recurseTruth, panicsTruth, exitsTruth, yieldsTruth, burnsTruth, methodTruth truth
)

//go:noinline
func quick(t *truth) {
	began := now()
	atomic.AddUint64(&t.inner, now()-began)
}

// grows needs more stack than a new goroutine has: its prologue calls morestack.
//
//go:noinline
func grows(t *truth, n int) byte {
	var big [12 << 10]byte
	began := now()
	big[n] = byte(n)
	big[n*7%len(big)] += byte(n)
	atomic.AddUint64(&t.inner, now()-began)
	return big[n/2]
}

// recurse moves its stack several times on its way down, and yields at the bottom.
//
//go:noinline
func recurse(t *truth, depth int) int {
	var frame [64]byte
	began := now()
	result := 0
	if depth > 0 {
		frame[depth%64] = byte(depth)
		result = recurse(t, depth-1) + int(frame[(depth+1)%64]) + 1
	} else {
		runtime.Gosched()
	}
	atomic.AddUint64(&t.inner, now()-began)
	return result
}

//go:noinline
func panics(t *truth, n int) {
	began := now()
	if n%2 == 1 {
		panic("one")
	}
	atomic.AddUint64(&t.inner, now()-began)
}

func recovers(t *truth, n int) {
	defer func() {
		if recover() != nil {
			atomic.AddUint64(&t.abandoned, 1)
		}
	}()
	began := now()
	panics(t, n)
	atomic.AddUint64(&t.outer, now()-began)
	atomic.AddUint64(&t.calls, 1)
}

//go:noinline
func exits(t *truth) {
	atomic.AddUint64(&t.abandoned, 1)
	runtime.Goexit()
}

// yields goes on on another thread, as often as not.
//
//go:noinline
func yields(t *truth) {
	began := now()
	runtime.Gosched()
	time.Sleep(time.Microsecond)
	atomic.AddUint64(&t.inner, now()-began)
}

// burns is called in a tight loop, so that requests to preempt come at its entry.
//
//go:noinline
func burns(t *truth, n uint64) uint64 {
	var frame [256]byte
	frame[n%256] = byte(n)
	return helps(&frame, n)
}

//go:noinline
func helps(frame *[256]byte, n uint64) uint64 { return uint64(frame[n%256]) + n }

type counter struct{ value uint64 }

//go:noinline
func (c *counter) method(t *truth) {
	began := now()
	c.value++
	atomic.AddUint64(&t.inner, now()-began)
}

func (t *truth) timed(call func()) {
	began := now()
	call()
	atomic.AddUint64(&t.outer, now()-began)
	atomic.AddUint64(&t.calls, 1)
}

func each(count int, work func()) {
	var all sync.WaitGroup
	for i := 0; i < count; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			work()
		}()
	}
	all.Wait()
}

func burn(times int) {
	done := make(chan bool)
	go func() {
		// Each collection asks all goroutines to stop.
		for i := 0; ; i++ {
			select {
			case <-done:
				done <- true
				return
			default:
				runtime.GC()
			}
		}
	}()
	each(4, func() {
		began, sum := now(), uint64(0)
		for i := 0; i < times; i++ {
			sum += burns(&burnsTruth, uint64(i))
		}
		atomic.AddUint64(&burnsTruth.outer, now()-began)
		atomic.AddUint64(&burnsTruth.calls, uint64(times))
	})
	done <- true
	<-done
}

func main() {
	goroutines, times := 1000, 1000
	if len(os.Args) > 2 {
		goroutines, _ = strconv.Atoi(os.Args[1])
		times, _ = strconv.Atoi(os.Args[2])
	}
	each(8, func() {
		c := &counter{}
		for i := 0; i < times; i++ {
			quickTruth.timed(func() { quick(&quickTruth) })
			methodTruth.timed(func() { c.method(&methodTruth) })
		}
	})
	each(goroutines, func() {
		growsTruth.timed(func() { grows(&growsTruth, 100) })
		growsTruth.timed(func() { grows(&growsTruth, 200) })
	})
	each(goroutines, func() { yieldsTruth.timed(func() { yields(&yieldsTruth) }) })
	each(4, func() {
		began := now()
		recurse(&recurseTruth, 10000)
		// No level takes longer than all of them.
		atomic.AddUint64(&recurseTruth.outer, (now()-began)*10001)
		atomic.AddUint64(&recurseTruth.calls, 10001)
	})
	each(4, func() {
		for i := 0; i < times; i++ {
			recovers(&panicsTruth, i)
		}
	})
	each(goroutines, func() { exits(&exitsTruth) })
	burn(times)
	for _, t := range []struct {
		name string
		*truth
	}{{"main.quick", &quickTruth}, {"main.(*counter).method", &methodTruth}, {"main.grows", &growsTruth},
		{"main.recurse", &recurseTruth}, {"main.panics", &panicsTruth}, {"main.exits", &exitsTruth},
		{"main.yields", &yieldsTruth}, {"main.burns", &burnsTruth}} {
		fmt.Println(t.name, t.calls, t.inner, t.outer, t.abandoned)
	}
}
