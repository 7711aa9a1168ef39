//! The target [`cofferdam_fuzz::inspector`].

#![cfg_attr(fuzzing, no_main)]

cofferdam_fuzz::program!(INSPECTOR);
