// SPDX-License-Identifier: Apache-2.0

// Golabels runs goroutines whose pprof labels say what they are doing:
//
//	golabels [SECONDS]
//
// prints `ready`, and runs until it is killed or the time is up. A sample with main.fN on its stack
// has the label work=fN, and one with main.outerN has outer=N; f8 and f9 have no labels. Labels come
// from pprof.Do, nested and inherited by goroutines, and from SetGoroutineLabels, with one label, with
// more than a map's bucket has, and with new values all the time. What the functions do leads the
// runtime to its system stacks: garbage, channels, system calls, timers.
package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"strconv"
	"time"
)

var (
	sink uint64
	kept [64][]byte
)

//go:noinline
func mix(x uint64) uint64 {
	for i := 0; i < 2000; i++ {
		x = x*6364136223846793005 + 1442695040888963407
		x ^= x >> 29
	}
	return x
}

// A goroutine's labels, and all that its children inherit.
func with(ctx context.Context, f func(context.Context), pairs ...string) {
	pprof.Do(ctx, pprof.Labels(pairs...), f)
}

//go:noinline
func f0(x uint64) uint64 {
	for i := 0; i < 100; i++ {
		x += mix(x)
	}
	return x
}

// Garbage: the collector runs on this goroutine's behalf.
//
//go:noinline
func f1(x uint64) uint64 {
	for i := 0; i < 100; i++ {
		kept[i%len(kept)] = make([]byte, 4096+int(x%4096))
		x += mix(x)
	}
	return x
}

// System calls and the scheduler.
//
//go:noinline
func f2(x uint64) uint64 {
	for i := 0; i < 500; i++ {
		if _, err := os.Stat("/nonexistent"); err == nil {
			panic("it exists")
		}
		x += mix(x)
		if i%100 == 0 {
			runtime.Gosched()
		}
	}
	return x
}

// In a goroutine that inherited its labels.
//
//go:noinline
func f3(x uint64) uint64 {
	for i := 0; i < 100; i++ {
		x += mix(x)
	}
	return x
}

// With nine labels: a map then has more than one bucket.
//
//go:noinline
func f4(x uint64) uint64 {
	for i := 0; i < 100; i++ {
		x += mix(x)
	}
	return x
}

// With a value of its own each time.
//
//go:noinline
func f5(x uint64) uint64 {
	for i := 0; i < 10; i++ {
		x += mix(x)
	}
	return x
}

// A channel hands over between goroutines with different labels.
//
//go:noinline
func f6(x uint64) uint64 { return mix(x) }

//go:noinline
func f7(x uint64) uint64 { return mix(x) }

// Without labels: never had any, and had some before.
//
//go:noinline
func f8(x uint64) uint64 {
	for i := 0; i < 100; i++ {
		x += mix(x)
	}
	return x
}

//go:noinline
func f9(x uint64) uint64 {
	for i := 0; i < 100; i++ {
		x += mix(x)
	}
	return x
}

//go:noinline
func outer1(ctx context.Context, x uint64) uint64 {
	for i := 0; i < 10; i++ {
		with(ctx, func(context.Context) { x = f0(x) }, "work", "f0")
		with(ctx, func(context.Context) { x = f1(x) }, "work", "f1")
	}
	return x
}

//go:noinline
func outer2(ctx context.Context, x uint64) uint64 {
	done := make(chan uint64)
	with(ctx, func(context.Context) {
		go func() { done <- f3(x) }()
	}, "work", "f3")
	return <-done
}

func many(ctx context.Context, x uint64) uint64 {
	with(ctx, func(context.Context) { x = f4(x) }, "work", "f4", "a1", "1", "b2", "2", "c3", "3",
		"d4", "4", "e5", "5", "f6", "6", "g7", "7", "h8", "8")
	return x
}

func traced(ctx context.Context, x uint64) uint64 {
	for i := 0; i < 20; i++ {
		id := fmt.Sprintf("%016x", x)
		with(ctx, func(context.Context) { x = f5(x) }, "work", "f5", "span_id", id,
			"trace_id", id+id)
	}
	return x
}

func handOver(ctx context.Context) {
	ping, pong := make(chan uint64), make(chan uint64)
	go func() {
		pprof.SetGoroutineLabels(pprof.WithLabels(ctx, pprof.Labels("work", "f6")))
		for x := range ping {
			pong <- f6(x)
		}
	}()
	go func() {
		pprof.SetGoroutineLabels(pprof.WithLabels(ctx, pprof.Labels("work", "f7")))
		for x := uint64(1); ; x++ {
			ping <- f7(x)
			sink += <-pong
		}
	}()
}

func had(ctx context.Context, x uint64) uint64 {
	with(ctx, func(context.Context) { x = f0(x) }, "work", "f0")
	return f9(x)
}

func forever(f func(context.Context, uint64) uint64, pairs ...string) {
	go with(context.Background(), func(ctx context.Context) {
		for x := uint64(1); ; {
			x = f(ctx, x)
		}
	}, pairs...)
}

func main() {
	seconds := 3600
	if len(os.Args) > 1 {
		seconds, _ = strconv.Atoi(os.Args[1])
	}
	forever(outer1, "outer", "1")
	forever(outer2, "outer", "2")
	forever(many)
	forever(traced)
	forever(had)
	handOver(context.Background())
	go func() {
		for x := uint64(1); ; {
			x = f8(x)
		}
	}()
	forever(func(ctx context.Context, x uint64) uint64 {
		with(ctx, func(context.Context) { x = f2(x) }, "work", "f2")
		return x
	})
	// Keys of ours, and text that is not UTF-8.
	forever(func(ctx context.Context, x uint64) uint64 { return mix(x) }, "pid", "1", "comm", "liar",
		"bad", "\xff\x00\xfe", "long", string(make([]byte, 1000)))
	fmt.Println("ready")
	time.Sleep(time.Duration(seconds) * time.Second)
}
