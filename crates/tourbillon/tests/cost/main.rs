//! What it costs to wait: next to no CPU time, and no wake-ups. And the threads that wait end with their engine.
//!
//! In real time, all of it: what a thread of the engine costs is known to the kernel alone, and a virtual clock has no
//! such threads. Time is measured as CPU time, which a loaded machine does not change much; a row fails only if it is
//! too dear three times in succession. Rows run one after the other: the kernel counts for the whole process.

#![cfg(target_os = "linux")]

#[path = "../common/mod.rs"]
mod common;

mod blocked;
mod clocks;
mod deadlines;
mod descriptors;
mod idle;
mod memory;
mod meter;
mod refusing;
mod steps;
mod threads;
