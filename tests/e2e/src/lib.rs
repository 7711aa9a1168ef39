//! What end-to-end tests stand on: a real cluster with Cofferdam installed, a namespace per test, and the questions that
//! a person would ask of it.

pub mod api;
pub mod creations;
pub mod demo;
pub mod dry_run;
pub mod images;
pub mod install;
pub mod interrupt;
pub mod kubectl;
pub mod monitoring;
pub mod namespace;
pub mod openapi;
pub mod permissions;
pub mod port_forward;
pub mod proof;
pub mod routing;
pub mod stage;
pub mod wait;
