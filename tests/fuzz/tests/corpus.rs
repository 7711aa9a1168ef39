//! Every committed input, once: those to begin with, and those that broke a promise one day.

#![expect(clippy::panic, reason = "a test that cannot go on has failed")]

use std::{collections::BTreeSet, fs};

use cofferdam_fuzz::target::{ALL, Target};

fn contents(target: &Target) -> Vec<(String, Vec<u8>)> {
    let seeds = target.seeds().unwrap_or_else(|error| panic!("{}: {error}", target.name));
    seeds.iter().map(|path| (path.display().to_string(), fs::read(path).unwrap_or_default())).collect()
}

#[test]
fn every_committed_input_keeps_the_promises() {
    for target in ALL {
        for (path, bytes) in contents(target) {
            println!("{path}");
            (target.check)(&bytes);
        }
    }
}

#[test]
fn every_target_has_inputs_that_the_engine_takes_whole() {
    for target in ALL {
        let contents = contents(target);
        assert!(contents.len() >= 3, "{}", target.name);
        for (path, bytes) in contents {
            assert!(!bytes.is_empty() && bytes.len() <= target.max_len, "{path}");
        }
    }
}

#[test]
fn every_target_has_a_name_of_its_own() {
    assert_eq!(ALL.iter().map(|target| target.name).collect::<BTreeSet<_>>().len(), ALL.len());
}
