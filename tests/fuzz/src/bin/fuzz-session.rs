//! The target [`cofferdam_fuzz::session`].

#![cfg_attr(fuzzing, no_main)]

cofferdam_fuzz::program!(SESSION);
