//! The cost of waiting: almost no CPU time, and no wake-ups. And the threads that wait end with their engine.
//!
//! All in real time: only the kernel knows what a thread of the engine costs, and a virtual clock has no such threads.
//! What is measured is CPU time, which a loaded machine does not change much; a row fails only if it is too expensive
//! three times in a row. Rows run one after another, because the kernel counts for the whole process.

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
