// SPDX-License-Identifier: Apache-2.0
// As latency.c, with panics that unwind, generic functions, closures and async functions. The names are
// those that mangling v0 gives.
mod black_box;

use black_box::black_box;
use std::any::type_name;
use std::cell::Cell;
use std::future::Future;
use std::panic;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;
use std::task::{Context, Poll, Wake};
use std::time::Instant;

struct Truth {
    calls: AtomicU64,
    inner_ns: AtomicU64,
    outer_ns: AtomicU64,
    abandoned: AtomicU64,
}

impl Truth {
    const fn new() -> Truth {
        const ZERO: AtomicU64 = AtomicU64::new(0);
        Truth { calls: ZERO, inner_ns: ZERO, outer_ns: ZERO, abandoned: ZERO }
    }

    fn timed<R>(&self, call: impl FnOnce() -> R) -> R {
        let began = Instant::now();
        let result = call();
        self.outer_ns.fetch_add(began.elapsed().as_nanos() as u64, Relaxed);
        self.calls.fetch_add(1, Relaxed);
        result
    }

    fn print(&self, name: &str) {
        let of = |value: &AtomicU64| value.load(Relaxed);
        println!("{} {} {} {} {}", name, of(&self.calls), of(&self.inner_ns), of(&self.outer_ns), of(&self.abandoned));
    }
}

static QUICK: Truth = Truth::new();
static OF_U32: Truth = Truth::new();
static OF_STRING: Truth = Truth::new();
static PASSES: Truth = Truth::new();
static CATCHES: Truth = Truth::new();
static DROPS: Truth = Truth::new();
static POLLS: Truth = Truth::new();

/// Adds the time of a scope, also of one that a panic leaves.
struct Inner(&'static Truth, Instant);

impl Inner {
    fn of(truth: &'static Truth) -> Inner {
        Inner(truth, Instant::now())
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.0.inner_ns.fetch_add(self.1.elapsed().as_nanos() as u64, Relaxed);
    }
}

#[inline(never)]
fn quick(n: u64) -> u64 {
    let _inner = Inner::of(&QUICK);
    black_box(n)
}

/// Two functions, for two types.
#[inline(never)]
fn generic<T>(truth: &'static Truth, value: &T) -> usize {
    let _inner = Inner::of(truth);
    black_box(value);
    type_name::<T>().len()
}

/// Is called while a panic unwinds, too, and returns then as well.
#[inline(never)]
fn drops() {
    let _inner = Inner::of(&DROPS);
    black_box(0);
}

struct Dropped;

impl Drop for Dropped {
    fn drop(&mut self) {
        DROPS.timed(drops);
    }
}

#[inline(never)]
fn passes(depth: u32, panics: bool) -> u32 {
    let began = Instant::now();
    let _dropped = if depth % 5 == 0 { Some(Dropped) } else { None };
    if depth == 0 && panics {
        panic!("at the bottom");
    }
    let result = if depth > 0 { passes(depth - 1, panics) + 1 } else { 1 };
    PASSES.inner_ns.fetch_add(began.elapsed().as_nanos() as u64, Relaxed);
    PASSES.calls.fetch_add(1, Relaxed);
    black_box(result)
}

#[inline(never)]
fn catches(depth: u32, panics: bool) -> u32 {
    let _inner = Inner::of(&CATCHES);
    panic::catch_unwind(|| passes(depth, panics)).unwrap_or_else(|_| {
        PASSES.abandoned.fetch_add(u64::from(depth) + 1, Relaxed);
        0
    })
}

/// Is pending as often as it says.
struct Pending(Cell<u32>);

impl Future for Pending {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let left = self.0.get();
        self.0.set(left.saturating_sub(1));
        context.waker().wake_by_ref();
        if left == 0 { Poll::Ready(()) } else { Poll::Pending }
    }
}

async fn waits(times: u32) -> u32 {
    let mut sum = 0;
    for i in 0..times {
        Pending(Cell::new(i % 3)).await;
        sum += black_box(i);
    }
    sum
}

/// In old versions of Rust, as 1.63, an async function is inlined into the poll() of a wrapper.
fn name_of_poll<F: Future>(_: fn(u32) -> F) -> &'static str {
    if type_name::<F>().contains("GenFuture") {
        "<core::future::from_generator::GenFuture<latency::waits::{closure#0}> as core::future::future::Future>::poll"
    } else {
        "latency::waits::{closure#0}"
    }
}

struct Nobody;

impl Wake for Nobody {
    fn wake(self: Arc<Self>) {}
}

fn run_async(times: u32) {
    let waker = Arc::new(Nobody).into();
    let mut context = Context::from_waker(&waker);
    // Not known to the compiler, so that it cannot be inlined.
    let mut future: Pin<Box<dyn Future<Output = u32>>> = black_box(Box::pin(waits(times)));
    while POLLS.timed(|| future.as_mut().poll(&mut context)).is_pending() {}
}

fn main() {
    let times: u32 = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(1000);
    panic::set_hook(Box::new(|_| {}));
    let began = Instant::now();
    let threads: Vec<_> = (0..4)
        .map(|_| {
            std::thread::spawn(move || {
                for i in 0..times {
                    QUICK.timed(|| quick(u64::from(i)));
                    OF_U32.timed(|| generic(&OF_U32, &i));
                    OF_STRING.timed(|| generic(&OF_STRING, &String::new()));
                    CATCHES.timed(|| catches(i % 20, i % 3 == 0));
                }
                run_async(times);
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    PASSES.outer_ns.store(began.elapsed().as_nanos() as u64 * 20 * 4, Relaxed);
    QUICK.print("latency::quick");
    OF_U32.print("latency::generic::<u32>");
    OF_STRING.print("latency::generic::<alloc::string::String>");
    PASSES.print("latency::passes");
    CATCHES.print("latency::catches");
    DROPS.print("latency::drops");
    POLLS.print(name_of_poll(waits));
}
