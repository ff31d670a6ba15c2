// SPDX-License-Identifier: Apache-2.0

// Goid runs goroutines that each burn time in a function of their own and say which they are:
//
//	goid [SECONDS]
//
// prints `worker N goid G` for each, then `ready`, and runs until it is killed or the time is up.
// A sample with main.workerN on its stack belongs to goroutine G. What the workers do leads the
// runtime to its system stacks as often as may be: channels, garbage, system calls, timers, locks.
package main

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"
)

var (
	sink  uint64
	mutex sync.Mutex
	ping  = make(chan uint64)
	pong  = make(chan uint64)
	kept  [64][]byte
	ready sync.WaitGroup
	start = make(chan struct{})
	zero  *os.File
)

func goid() uint64 {
	var text [64]byte
	fields := bytes.Fields(text[:runtime.Stack(text[:], false)])
	id, err := strconv.ParseUint(string(fields[1]), 10, 64)
	if err != nil {
		panic(err)
	}
	return id
}

//go:noinline
func mix(x uint64) uint64 {
	for i := 0; i < 50; i++ {
		x = x*6364136223846793005 + 1442695040888963407
		x ^= x >> 29
	}
	return x
}

//go:noinline
func deep(x uint64, depth int) uint64 {
	if depth == 0 {
		return mix(x)
	}
	return deep(x+1, depth-1) ^ 1
}

//go:noinline
func worker0(x uint64) uint64 {
	for i := 0; i < 1000; i++ {
		x = x*3 + mix(x)
	}
	return x
}

//go:noinline
func worker1(x uint64) uint64 {
	for i := 0; i < 100; i++ {
		x += deep(x, 30)
	}
	return x
}

//go:noinline
func worker2(x uint64) uint64 {
	for i := 0; i < 100; i++ {
		ping <- mix(x)
		x = <-pong
	}
	return x
}

//go:noinline
func worker3(x uint64) uint64 {
	for i := 0; i < 100; i++ {
		x = <-ping
		pong <- mix(x)
	}
	return x
}

//go:noinline
func worker4(x uint64) uint64 {
	for i := 0; i < 200; i++ {
		kept[x%64] = make([]byte, 512+x%8192)
		x = x*5 + 1 + uint64(len(kept[x%64]))
	}
	return x
}

//go:noinline
func worker5(x uint64) uint64 {
	var buffer [4096]byte
	for i := 0; i < 50; i++ {
		n, _ := zero.Read(buffer[:])
		x += uint64(syscall.Getppid()) + uint64(n)
	}
	return x
}

//go:noinline
func worker6(x uint64) uint64 {
	for i := 0; i < 20; i++ {
		x += mix(x)
	}
	time.Sleep(100 * time.Microsecond)
	select {
	case <-time.After(50 * time.Microsecond):
	case <-time.After(time.Second):
	}
	return x
}

//go:noinline
func worker7(x uint64) uint64 {
	for i := 0; i < 100; i++ {
		mutex.Lock()
		sink = mix(x)
		mutex.Unlock()
		runtime.Gosched()
	}
	return x + 1
}

//go:noinline
func worker8(x uint64) uint64 {
	for i := 0; i < 100; i++ {
		mutex.Lock()
		sink += mix(x)
		mutex.Unlock()
	}
	return x + 1
}

//go:noinline
func worker9(x uint64) uint64 {
	squares := map[uint64]string{}
	for i := uint64(0); i < 200; i++ {
		squares[x+i*i] = strconv.FormatUint(i, 10)
	}
	done := make(chan uint64)
	go func() { done <- mix(x) }()
	return <-done + uint64(len(squares))
}

func run(number int, work func(uint64) uint64) {
	mutex.Lock()
	fmt.Printf("worker %d goid %d\n", number, goid())
	mutex.Unlock()
	ready.Done()
	<-start
	for x := uint64(number); ; {
		x = work(x)
	}
}

func main() {
	var err error
	if zero, err = os.Open("/dev/zero"); err != nil {
		panic(err)
	}
	workers := []func(uint64) uint64{worker0, worker1, worker2, worker3, worker4, worker5, worker6,
		worker7, worker8, worker9}
	// Goroutine ids that are not simply one after the other.
	for i := 0; i < 100; i++ {
		ready.Add(1)
		go func() { ready.Done() }()
	}
	ready.Wait()
	for i, work := range workers {
		ready.Add(1)
		go run(i, work)
	}
	ready.Wait()
	fmt.Println("ready")
	close(start)
	if len(os.Args) > 1 {
		seconds, _ := strconv.Atoi(os.Args[1])
		time.Sleep(time.Duration(seconds) * time.Second)
		return
	}
	select {}
}
