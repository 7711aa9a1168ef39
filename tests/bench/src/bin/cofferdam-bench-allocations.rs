//! Counts what the stages of a review allocate. A program of its own, since the counting allocator is part of whatever
//! program it is linked into.

use allocation_counter::measure;
use cofferdam_bench::review::{Allocations, count_allocations};

fn main() -> anyhow::Result<()> {
    count_allocations(|run| {
        let counted = measure(run);
        Allocations { count: counted.count_total, bytes: counted.bytes_total }
    })
}
