// SPDX-License-Identifier: Apache-2.0
// A value that the compiler can assume nothing about. std::hint::black_box() exists only from Rust 1.66 on.
#[inline(always)]
pub fn black_box<T>(mut value: T) -> T {
    let place = std::ptr::addr_of_mut!(value);
    unsafe { std::arch::asm!("/* {0} */", in(reg) place, options(nostack, preserves_flags)) };
    value
}
