//! The target [`cofferdam_fuzz::quantity`].

#![cfg_attr(fuzzing, no_main)]

cofferdam_fuzz::program!(QUANTITY);
