//! `tourbillon serve` as a process, seen from outside. In real time.

mod kill;
mod process;
mod served;
mod trouble;
