// SPDX-License-Identifier: Apache-2.0

// Heap keeps some memory and writes its own heap profile, as /debug/pprof/heap gives it, to the file
// that is named.
package main

import (
	"os"
	"runtime"
	"runtime/pprof"
)

var kept [][]byte

//go:noinline
func keep(n int) { kept = append(kept, make([]byte, n)) }

func main() {
	runtime.MemProfileRate = 1
	for i := 0; i < 100; i++ {
		keep(1 << 10)
	}
	runtime.GC()
	f, err := os.Create(os.Args[1])
	if err == nil {
		err = pprof.WriteHeapProfile(f)
	}
	if err != nil {
		panic(err)
	}
	runtime.KeepAlive(kept)
}
