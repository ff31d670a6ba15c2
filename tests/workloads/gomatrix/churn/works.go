// SPDX-License-Identifier: Apache-2.0

package churn

import (
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"
)

type node struct {
	left, right *node
	text        [16]byte
}

var (
	mutex  sync.Mutex
	shared uint64
	pid    = syscall.Getpid()
)

// What goroutines do: each leads the runtime to other stacks, threads or goroutines.
var works = []func(uint64){spin, garbage, calls, handOff, locked, foreign, signals, grow, waits,
	contend, panics}

//go:noinline
func mix(x uint64) uint64 {
	for i := 0; i < 300; i++ {
		x = x*6364136223846793005 + 1442695040888963407
		x ^= x >> 29
	}
	return x
}

//go:noinline
func build(depth int) *node {
	if depth == 0 {
		return nil
	}
	return &node{left: build(depth - 1), right: build(depth - 1)}
}

//go:noinline
func deep(depth int) byte {
	var room [400]byte
	room[depth&255] = byte(depth)
	if depth == 0 {
		return room[0]
	}
	return deep(depth-1) + room[7]
}

func spin(x uint64) {
	for i := 0; i < 20; i++ {
		x = mix(x)
	}
}

func garbage(x uint64) {
	kept := build(6)
	squares := map[uint64]string{}
	for i := uint64(0); i < 20; i++ {
		squares[x+i*i] = strconv.FormatUint(i, 10)
	}
	large := make([]byte, 4096+x%16384)
	runtime.KeepAlive(kept)
	runtime.KeepAlive(large)
}

func calls(x uint64) {
	var buffer [4096]byte
	for i := 0; i < 4; i++ {
		zero.Read(buffer[:])
		null.Write(buffer[:])
		syscall.Getppid()
		x = mix(x)
	}
}

// handOff has a partner, which spells its own id. It begins with the labels of its creator.
func handOff(x uint64) {
	there, back := make(chan uint64), make(chan uint64)
	go func() {
		tell(func() {
			for y := range there {
				back <- mix(y)
			}
			close(back)
		})
	}()
	for i := 0; i < 8; i++ {
		there <- mix(x)
		x = <-back
	}
	close(there)
	<-back
}

func locked(x uint64) {
	runtime.LockOSThread()
	for i := 0; i < 4; i++ {
		x = mix(x)
		syscall.Getppid()
		runtime.Gosched()
	}
	runtime.UnlockOSThread()
}

func signals(x uint64) {
	for i := 0; i < 4; i++ {
		syscall.Kill(pid, syscall.SIGUSR1)
		x = mix(x)
	}
}

func grow(x uint64) {
	deep(int(x % 64))
	mix(x)
}

func waits(x uint64) {
	mix(x)
	select {
	case <-time.After(50 * time.Microsecond):
	case <-time.After(time.Second):
	}
	mix(x)
}

func contend(x uint64) {
	for i := 0; i < 8; i++ {
		mutex.Lock()
		shared += mix(x)
		mutex.Unlock()
	}
}

func panics(x uint64) {
	defer func() { mix(recover().(uint64)) }()
	deferred := func() { mix(x) }
	defer deferred()
	panic(mix(x))
}
