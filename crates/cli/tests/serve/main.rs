//! `tourbillon serve` as a process, seen from outside. In real time.

mod docs;
mod kill;
mod process;
mod remote;
mod served;
mod trouble;
