// SPDX-License-Identifier: Apache-2.0
// A generic, an inlined closure and a trait object: prints `function NAME` for each function that
// is on the hot stack, innermost first, then `ready`, and runs for argv[1] seconds.
mod black_box;

use black_box::black_box;
use std::io::Write;
use std::time::{Duration, Instant};

mod engine {
    pub trait Step {
        fn step(&self, x: u64) -> u64;
    }

    pub struct Mixer {
        pub rounds: u32,
    }

    impl Step for Mixer {
        #[inline(never)]
        fn step(&self, mut x: u64) -> u64 {
            for _ in 0..self.rounds {
                x = super::churn::<u64>(x);
            }
            x
        }
    }
}

#[inline(never)]
fn churn<T: Into<u64>>(x: T) -> u64 {
    let mut x: u64 = x.into();
    for _ in 0..2000 {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        x = black_box(x);
    }
    x
}

fn main() {
    let seconds = std::env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(60);
    let end = Instant::now() + Duration::from_secs(seconds);
    let step: Box<dyn engine::Step> = Box::new(engine::Mixer { rounds: 1000 });
    println!("function spin::churn");
    println!("function <spin::engine::Mixer as spin::engine::Step>::step");
    println!("function spin::main");
    println!("ready");
    std::io::stdout().flush().unwrap();
    let mut x = 1;
    while Instant::now() < end {
        x = step.step(black_box(x));
    }
    black_box(x);
}
