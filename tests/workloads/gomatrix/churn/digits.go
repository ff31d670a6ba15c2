// SPDX-License-Identifier: Apache-2.0

package churn

// A goroutine's id as functions on its stack, one for each hexadecimal digit, the last digit
// outermost: goid 0x2a of 6 digits is work() < digit0 < digit0 < digit0 < digit0 < digit2 < digita.

const digits = 6

var digitFunctions [16]func(rest uint64, left int, work func())

func spell(rest uint64, left int, work func()) {
	if left == 0 {
		work()
		return
	}
	digitFunctions[rest%16](rest/16, left-1, work)
}

//go:noinline
func digit0(rest uint64, left int, work func()) { spell(rest, left, work) }

//go:noinline
func digit1(rest uint64, left int, work func()) { spell(rest, left, work) }

//go:noinline
func digit2(rest uint64, left int, work func()) { spell(rest, left, work) }

//go:noinline
func digit3(rest uint64, left int, work func()) { spell(rest, left, work) }

//go:noinline
func digit4(rest uint64, left int, work func()) { spell(rest, left, work) }

//go:noinline
func digit5(rest uint64, left int, work func()) { spell(rest, left, work) }

//go:noinline
func digit6(rest uint64, left int, work func()) { spell(rest, left, work) }

//go:noinline
func digit7(rest uint64, left int, work func()) { spell(rest, left, work) }

//go:noinline
func digit8(rest uint64, left int, work func()) { spell(rest, left, work) }

//go:noinline
func digit9(rest uint64, left int, work func()) { spell(rest, left, work) }

//go:noinline
func digita(rest uint64, left int, work func()) { spell(rest, left, work) }

//go:noinline
func digitb(rest uint64, left int, work func()) { spell(rest, left, work) }

//go:noinline
func digitc(rest uint64, left int, work func()) { spell(rest, left, work) }

//go:noinline
func digitd(rest uint64, left int, work func()) { spell(rest, left, work) }

//go:noinline
func digite(rest uint64, left int, work func()) { spell(rest, left, work) }

//go:noinline
func digitf(rest uint64, left int, work func()) { spell(rest, left, work) }

func init() {
	digitFunctions = [16]func(uint64, int, func()){
		digit0, digit1, digit2, digit3, digit4, digit5, digit6, digit7,
		digit8, digit9, digita, digitb, digitc, digitd, digite, digitf,
	}
}
