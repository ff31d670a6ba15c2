// SPDX-License-Identifier: Apache-2.0
// Functions that print their arguments as a trace shows them.
mod black_box;

use black_box::black_box;

#[inline(never)]
#[no_mangle]
pub fn ints(a: i8, b: u64, c: i32, d: bool, e: u16) -> i64 {
    println!("call ints(a={}, b={}, c={}, d={}, e={})", a, b, c, d, e);
    println!("left ints: {}", a as i64 + c as i64);
    black_box(a as i64 + c as i64)
}

pub struct Point {
    pub x: i32,
    pub y: i32,
}

#[inline(never)]
#[no_mangle]
pub fn points(p: &Point, n: usize) -> u32 {
    println!("call points(p=&{{x={}, y={}}}, n={})", p.x, p.y, n);
    println!("left points: {}", n as u32);
    black_box(n as u32)
}

#[derive(Debug, Clone, Copy)]
pub enum Colour {
    Red = 1,
    Green = 200,
}

pub struct Owner {
    pub name: String,
    pub tags: Vec<u16>,
    pub data: [u32; 3],
}

#[inline(never)]
#[no_mangle]
pub fn texts(o: &Owner, s: &str, list: &[u32], c: char, colour: Colour) -> usize {
    println!(
        "call texts(o=&{{name={:?}, tags=[len {}], data={:?}}}, s={:?}, list=[len {}], c='{}', colour={:?})",
        o.name,
        o.tags.len(),
        o.data,
        s,
        list.len(),
        c,
        colour
    );
    println!("left texts: {}", s.len());
    black_box(s.len())
}

pub enum Shape {
    Empty,
    Circle(u32),
    Square { side: i64, name: u8 },
}

// Enums with data are not known; what is beside them is.
#[inline(never)]
#[no_mangle]
pub fn enums(s: &Shape, n: u32, o: Option<u32>) -> u32 {
    let sum = match s {
        Shape::Empty => n,
        Shape::Circle(r) => n + r,
        Shape::Square { side, name } => n + *side as u32 + *name as u32,
    } + o.unwrap_or(0);
    println!("call enums(s={:p}, n={}, o=?)", s, n);
    println!("left enums: {}", sum);
    black_box(sum)
}

fn calls() {
    for shape in [Shape::Empty, Shape::Circle(7), Shape::Square { side: 5, name: 9 }] {
        enums(black_box(&shape), black_box(3), black_box(Some(4)));
        enums(black_box(&shape), black_box(4), black_box(None));
    }
    let owner = Owner { name: String::from("owner"), tags: vec![1, 2], data: [1, 2, 3] };
    texts(black_box(&owner), black_box("a text"), black_box(&[1, 2, 3]), black_box('r'), black_box(Colour::Green));
    texts(black_box(&owner), black_box(""), black_box(&[]), black_box('s'), black_box(Colour::Red));
    ints(black_box(-3), black_box(1 << 63), black_box(77), black_box(true), black_box(9));
    ints(black_box(3), black_box(4), black_box(-77), black_box(false), black_box(0));
    points(black_box(&Point { x: 5, y: -6 }), black_box(12));
}

fn main() {
    calls();
    calls();
}
