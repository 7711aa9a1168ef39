//! The target [`cofferdam_fuzz::policy`].

#![cfg_attr(fuzzing, no_main)]

cofferdam_fuzz::program!(POLICY);
