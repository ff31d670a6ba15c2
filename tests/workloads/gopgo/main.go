// SPDX-License-Identifier: Apache-2.0

// Gopgo burns CPU in calls that the compiler inlines only if a profile says that they are hot.
//
//	gopgo SECONDS
package main

import (
	"os"
	"strconv"
	"syscall"
)

// The bodies cost more than the compiler's usual limit for inlining, and less than that for hot calls.

func plain(x uint64) uint64 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 29
	x *= 0xc4ceb9fe1a85ec53
	x ^= x >> 31
	x += x << 7
	x ^= x >> 11
	x += x << 13
	x ^= x >> 17
	x *= 0x9e3779b97f4a7c15
	x ^= x >> 32
	x += x << 5
	x ^= x >> 3
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x += x << 9
	x ^= x >> 15
	x *= 0x94d049bb133111eb
	return x ^ x>>30
}

type number interface{ ~uint32 | ~uint64 }

func generic[T number](values []T, seed T) T {
	sum := seed
	for i, v := range values {
		if v&1 == 0 {
			sum += v * 3
		} else {
			sum ^= v<<3 + T(i)
		}
		if sum > v {
			sum -= v >> 2
		}
		if sum&7 == 3 {
			sum = sum<<5 | sum>>11
		}
		sum += v&0xff | sum&0xf0
		if sum < seed {
			sum ^= seed<<7 + v>>3
		}
		sum *= v | 1
		sum ^= sum >> 9 & (v<<1 | seed)
		if sum%3 == 0 {
			sum += T(i)*5 + v>>1
		}
	}
	return sum
}

// Never hot: called once.
func cold(x uint64) uint64 {
	for i := 0; i < 3; i++ {
		x ^= x >> 33
		x *= 0xff51afd7ed558ccd
		x ^= x >> 29
		x *= 0xc4ceb9fe1a85ec53
		x ^= x >> 31
		x += x << 7
		x ^= x >> 11
		x += x << 13
		x ^= x >> 17
		x *= 0x9e3779b97f4a7c15
		x ^= x >> 32
		x += x << 5
		x ^= x >> 3
		x *= 0xbf58476d1ce4e5b9
		x ^= x >> 27
		x += x << 9
		x ^= x >> 15
	}
	return x
}

var values [64]uint64

func burn(x uint64) uint64 {
	for i := 0; i < 1<<14; i++ {
		for j := 0; j < 50; j++ {
			x += plain(x)
		}
		x += generic(values[:], x)
	}
	return x
}

func now() int64 {
	var t syscall.Timeval
	syscall.Gettimeofday(&t)
	return int64(t.Sec)
}

func main() {
	seconds, _ := strconv.Atoi(os.Args[1])
	end := now() + int64(seconds)
	x := cold(uint64(end))
	for i := range values {
		x = plain(x)
		values[i] = x
	}
	os.Stdout.WriteString("ready\n")
	for now() < end {
		x = burn(x)
	}
	os.Stdout.WriteString(strconv.FormatUint(x, 10) + "\n")
}
