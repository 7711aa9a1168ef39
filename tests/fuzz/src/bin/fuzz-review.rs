//! The target [`cofferdam_fuzz::review`].

#![cfg_attr(fuzzing, no_main)]

cofferdam_fuzz::program!(REVIEW);
