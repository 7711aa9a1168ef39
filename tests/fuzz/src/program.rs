//! The `main` of a target's program.

use std::{env, fs, process::ExitCode};

use crate::target::Target;

/// Makes `main` of a target: libFuzzer's in a build with `--cfg fuzzing`, else [`replay`].
#[macro_export]
macro_rules! program {
    ($target:ident) => {
        #[cfg(fuzzing)]
        libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ($crate::target::$target.check)(bytes));

        #[cfg(fuzzing)]
        libfuzzer_sys::fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
            static VOCABULARY: std::sync::LazyLock<$crate::mutate::Vocabulary> =
                std::sync::LazyLock::new(|| $crate::mutate::Vocabulary::of(&$crate::target::$target));
            $crate::mutate::mutate(data, size, max_size, seed, &VOCABULARY, libfuzzer_sys::fuzzer_mutate)
        });

        #[cfg(not(fuzzing))]
        fn main() -> std::process::ExitCode {
            $crate::program::replay(&$crate::target::$target)
        }
    };
}

/// Runs the files named on the command line once each.
///
/// # Panics
/// Where one breaks a promise: that is what it was called for.
#[must_use]
pub fn replay(target: &Target) -> ExitCode {
    let files: Vec<_> = env::args_os().skip(1).collect();
    if files.is_empty() {
        eprintln!("fuzz-{} FILE...: name the inputs to run", target.name);
        return ExitCode::from(2);
    }
    for file in files {
        let name = file.to_string_lossy();
        match fs::read(&file) {
            Ok(bytes) => {
                (target.check)(&bytes);
                println!("{name}: holds");
            }
            Err(error) => {
                eprintln!("{name}: {error}");
                return ExitCode::from(2);
            }
        }
    }
    ExitCode::SUCCESS
}
