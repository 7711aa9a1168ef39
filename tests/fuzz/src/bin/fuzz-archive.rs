//! The target [`cofferdam_fuzz::archive`].

#![cfg_attr(fuzzing, no_main)]

cofferdam_fuzz::program!(ARCHIVE);
