// SPDX-License-Identifier: Apache-2.0

// Golabelled keeps one processor busy in a goroutine that has pprof labels:
//
//	golabelled COUNT [fresh]
//
// prints `ready`, and runs until it is killed. With `fresh`, each 0.1 ms of work or so has new values.
package main

import (
	"context"
	"fmt"
	"os"
	"runtime/pprof"
	"strconv"
)

var sink uint64

//go:noinline
func mix(x uint64) uint64 {
	for i := 0; i < 100000; i++ {
		x = x*6364136223846793005 + 1442695040888963407
	}
	return x
}

func labels(count int, round uint64) context.Context {
	var pairs []string
	for i := 0; i < count; i++ {
		pairs = append(pairs, fmt.Sprintf("key-%d", i), fmt.Sprintf("value-%d-%08d", i, round))
	}
	return pprof.WithLabels(context.Background(), pprof.Labels(pairs...))
}

func main() {
	count, err := strconv.Atoi(os.Args[1])
	if err != nil {
		panic(err)
	}
	fresh := len(os.Args) > 2
	pprof.SetGoroutineLabels(labels(count, 0))
	fmt.Println("ready")
	for round := uint64(1); ; round++ {
		sink = mix(sink)
		if fresh {
			pprof.SetGoroutineLabels(labels(count, round))
		}
	}
}
