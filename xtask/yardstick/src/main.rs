//! Uses nothing: what it depends on is built all the same.

fn main() {}
