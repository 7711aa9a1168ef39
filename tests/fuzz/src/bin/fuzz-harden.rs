//! The target [`cofferdam_fuzz::harden`].

#![cfg_attr(fuzzing, no_main)]

cofferdam_fuzz::program!(HARDEN);
