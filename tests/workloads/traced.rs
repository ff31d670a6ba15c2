// SPDX-License-Identifier: Apache-2.0
// Calls that fathom traces, and their truth, as in traced.cc: panics that are caught, and a recursion.
// Usage: traced THREADS ROUNDS DEPTH FILE
mod black_box;

use black_box::black_box;
use std::cell::RefCell;
use std::panic;

#[derive(Default)]
struct Truth {
    calls: Vec<String>,
    open: Vec<usize>,
}

thread_local! {
    static TRUTH: RefCell<Truth> = RefCell::default();
}

fn enter(name: &str) {
    TRUTH.with(|t| {
        let t = &mut *t.borrow_mut();
        t.calls.push(format!("{}:traced::{}()!", t.open.len(), name));
        t.open.push(t.calls.len() - 1);
    })
}

fn leave() {
    TRUTH.with(|t| {
        let t = &mut *t.borrow_mut();
        let last = t.open.pop().unwrap();
        t.calls[last].pop();
    })
}

fn open() -> usize {
    TRUTH.with(|t| t.borrow().open.len())
}

fn forget(open: usize) {
    TRUTH.with(|t| t.borrow_mut().open.truncate(open))
}

#[inline(never)]
fn t_leaf() {
    enter("t_leaf");
    black_box(1);
    leave();
    black_box(2);
}

#[inline(never)]
fn t_throw(n: i32) {
    enter("t_throw");
    if n == 0 {
        panic!("thrown");
    }
    t_throw(black_box(n - 1));
    leave();
    black_box(n);
}

// Not traced: what is below it has larger frames than what comes next.
#[inline(never)]
fn quiet(n: i32) {
    let mut room = [0u8; 500];
    black_box(&mut room)[n as usize] = 1;
    t_throw(n);
    black_box(&mut room);
}

#[inline(never)]
fn t_catch(n: i32) {
    enter("t_catch");
    let before = open();
    if panic::catch_unwind(|| quiet(n)).is_err() {
        forget(before);
        t_leaf();
    }
    t_leaf();
    leave();
    black_box(n);
}

#[inline(never)]
fn t_recurse(n: i32) {
    enter("t_recurse");
    if n > 0 {
        t_recurse(black_box(n - 1));
    }
    leave();
    black_box(n);
}

#[inline(never)]
fn t_root(rounds: i32, depth: i32) {
    enter("t_root");
    for i in 0..rounds {
        t_catch(i % 4);
    }
    t_recurse(depth);
    leave();
    black_box(rounds);
}

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let number = |i: usize| words[i].parse::<i32>().unwrap();
    let (rounds, depth) = (number(2), number(3));

    panic::set_hook(Box::new(|_| {}));
    let threads: Vec<_> = (0..number(1))
        .map(|_| {
            std::thread::Builder::new()
                .stack_size(64 << 20)
                .spawn(move || {
                    t_root(rounds, depth);
                    TRUTH.with(|t| t.borrow().calls.join(" "))
                })
                .unwrap()
        })
        .collect();
    let lines: Vec<String> = threads.into_iter().map(|t| t.join().unwrap() + "\n").collect();
    std::fs::write(&words[4], lines.concat()).unwrap();
    std::process::exit(4);
}
