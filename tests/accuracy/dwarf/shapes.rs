// SPDX-License-Identifier: Apache-2.0
use std::collections::BTreeMap;

mod inner {
    pub trait Area {
        fn area(&self) -> u64;
    }
    pub struct Square(pub u64);
    impl Area for Square {
        fn area(&self) -> u64 {
            self.0 * self.0
        }
    }
    pub fn total<T: Area>(items: &[T]) -> u64 {
        items.iter().map(|i| i.area()).filter(|a| a % 2 == 0).sum()
    }
}

#[inline(never)]
fn count(words: &[String]) -> BTreeMap<String, usize> {
    let mut map = BTreeMap::new();
    for word in words {
        *map.entry(word.to_lowercase()).or_insert(0) += 1;
    }
    map
}

#[no_mangle]
pub extern "C" fn plain(x: u64) -> u64 {
    inner::total(&[inner::Square(x), inner::Square(x + 1)])
}

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let mut counted: Vec<_> = count(&words).into_iter().collect();
    counted.sort_by(|a, b| b.1.cmp(&a.1));
    println!("{:?} {}", counted, plain(words.len() as u64));
}
