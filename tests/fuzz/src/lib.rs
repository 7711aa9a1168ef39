//! What must hold for any bytes at all, and the engine that looks for bytes for which it does not.
//!
//! | target | the bytes are | what must hold |
//! | --- | --- | --- |
//! | [`review`] | the body of an admission request | read as any JSON reader would; every answer is whole, the same twice, and its patch applies |
//! | [`quantity`] | one or two resource quantities | value, order and printed form agree with [`decimal`] arithmetic |
//! | [`policy`] | a policy file | it loads and hardens by [`harden`]'s promises, or is one line that begins with its file |
//! | [`archive`] | a tar file, or a tar.gz | unpacked, nothing of it lies or leads outside, or it is refused |
//! | [`annotations`] | ports, endpoints or an id, as a pod has them | read, written and read again it is the same |
//! | [`session`] | the body of a request for a session | it is one as its type says, or is told what is wrong |
//! | [`inspector`] | what a program's inspector streams | only events come of it, however it is cut, and little is held |
//! | [`harden`] | a pod | hardened once and for all, the patch says so, and the result is [`hard`]; or refused with a reason |
//!
//! A target is a function of bytes that panics where a promise is broken. [`engine`] builds the programs in
//! `src/bin` with coverage counters for libFuzzer, which grows the committed inputs of `corpus/` into new ones;
//! [`mutate`] keeps those JSON. The same programs, built as usual, run the files named on their command line once.

#![expect(clippy::panic, reason = "a fuzz target tells of a broken promise by a panic")]

pub mod annotations;
pub mod archive;
pub mod decimal;
pub mod engine;
pub mod hard;
pub mod harden;
pub mod inspector;
pub mod mutate;
pub mod policy;
pub mod program;
pub mod quantity;
pub mod review;
pub mod session;
pub mod target;
