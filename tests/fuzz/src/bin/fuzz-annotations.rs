//! The target [`cofferdam_fuzz::annotations`].

#![cfg_attr(fuzzing, no_main)]

cofferdam_fuzz::program!(ANNOTATIONS);
