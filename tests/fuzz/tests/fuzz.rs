//! Each target for a while: as many executions as fit into every change's tests, or as many as one has patience for.
//!
//! `make fuzz` runs them, `make fuzz TARGET=harden RUNS=10000000` one of them for longer.

use std::path::PathBuf;

use anyhow::Result;
use cofferdam_fuzz::{engine::fuzz, target};

/// Beside what cargo builds, so that it lasts as long.
fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).with_file_name("fuzzing")
}

#[test]
fn review_decodes_and_answers_any_body() -> Result<()> {
    fuzz(&target::REVIEW, &folder())
}

#[test]
fn quantity_agrees_with_decimal_arithmetic_about_any_text() -> Result<()> {
    fuzz(&target::QUANTITY, &folder())
}

#[test]
fn policy_loads_and_works_or_says_what_is_wrong() -> Result<()> {
    fuzz(&target::POLICY, &folder())
}

#[test]
fn annotations_that_are_read_are_written_as_they_were() -> Result<()> {
    fuzz(&target::ANNOTATIONS, &folder())
}

#[test]
fn any_archive_is_unpacked_within_its_tree_or_refused() -> Result<()> {
    fuzz(&target::ARCHIVE, &folder())
}

#[test]
fn harden_keeps_its_promises_for_any_pod() -> Result<()> {
    fuzz(&target::HARDEN, &folder())
}
