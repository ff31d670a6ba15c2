// SPDX-License-Identifier: Apache-2.0

// Functions of each form that Go has: closures, deferred ones, methods, generic ones, assembly, and
// C with its callbacks. They count and time their own calls. At the end each is a line `NAME CALLS
// INNER_NS OUTER_NS ABANDONED` as in golatency.
package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"goforms/asm"
)

type truth struct{ calls, inner, outer, abandoned uint64 }

var (
	start  = time.Now()
	order  []string
	truths = map[string]*truth{}
	// Called in each round of each goroutine.
	forms []func(n int)
)

func now() uint64 { return uint64(time.Since(start)) }

// form gives the truth about the function NAME.
func form(name string) *truth {
	order = append(order, name)
	truths[name] = &truth{}
	return truths[name]
}

func (t *truth) timed(call func()) { t.timedCalls(1, call) }

func (t *truth) timedCalls(calls uint64, call func()) {
	began := now()
	call()
	// No call takes longer than all of them.
	atomic.AddUint64(&t.outer, (now()-began)*calls)
	atomic.AddUint64(&t.calls, calls)
}

func (t *truth) saw(began uint64) { atomic.AddUint64(&t.inner, now()-began) }

// ---- closures and methods ------------------------------------------------------------------------

//go:noinline
func closure(t *truth) func() int {
	n := 0
	return func() int {
		began := now()
		n++
		t.saw(began)
		return n
	}
}

type value struct{ n int }

// byValue is also called through the wrapper that the compiler makes for pointers.
//
//go:noinline
func (v value) byValue(t *truth) int {
	began := now()
	t.saw(began)
	return v.n
}

type hasValue interface{ byValue(t *truth) int }

// ---- deferred calls ------------------------------------------------------------------------------

//go:noinline
func deferred(t *truth) {
	began := now()
	runtime.Gosched()
	t.saw(began)
}

//go:noinline
func defersAndPanics(t *truth) {
	defer deferred(t)
	panic("one")
}

// recovers always returns: where its deferred function recovered, behind all of its own code.
//
//go:noinline
func recovers(own, t *truth, n int) (result int) {
	began := now()
	defer own.saw(began)
	defer func() { _ = recover() }()
	switch n % 3 {
	case 0:
		defersAndPanics(t)
	case 1:
		for i := 0; i < 2; i++ {
			defer deferred(t)
		}
	default:
		defer deferred(t)
	}
	return n
}

// recoveredCalls is how many calls of deferred() there are in recovers(n).
func recoveredCalls(n int) uint64 {
	if n%3 == 1 {
		return 2
	}
	return 1
}

//go:noinline
func exits(own, t *truth) {
	defer deferred(t)
	atomic.AddUint64(&own.abandoned, 1)
	runtime.Goexit()
}

func init() {
	closures := form("main.closure.func1")
	values := form("main.value.byValue")
	forms = append(forms, func(n int) {
		next := closure(closures)
		closures.timed(func() { next() })
		closures.timed(func() { next() })
		var v hasValue = &value{n}
		values.timed(func() { v.byValue(values) })
		byName := value{n}.byValue
		values.timed(func() { byName(values) })
	})
	deferredTruth := form("main.deferred")
	recoversTruth := form("main.recovers")
	exitsTruth := form("main.exits")
	forms = append(forms, func(n int) {
		deferredTruth.timedCalls(recoveredCalls(n), func() {
			recoversTruth.timed(func() { recovers(recoversTruth, deferredTruth, n) })
		})
		if n%8 == 0 {
			deferredTruth.timed(func() {
				each(1, func() { exits(exitsTruth, deferredTruth) })
			})
		}
	})
	assembled := form("goforms/asm.Loops")
	forms = append(forms, func(n int) {
		assembled.timed(func() {
			if asm.Loops(100) != 300 {
				panic("assembly")
			}
		})
	})
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

func main() {
	goroutines, times := 8, 100
	if len(os.Args) > 2 {
		goroutines, _ = strconv.Atoi(os.Args[1])
		times, _ = strconv.Atoi(os.Args[2])
	}
	each(goroutines, func() {
		for n := 0; n < times; n++ {
			for _, f := range forms {
				f(n)
			}
		}
	})
	for _, name := range order {
		t := truths[name]
		fmt.Println(name, t.calls, t.inner, t.outer, t.abandoned)
	}
}
