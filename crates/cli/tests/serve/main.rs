//! `tourbillon serve` as a process, observed from outside. In real time.

mod docs;
mod kill;
mod outside;
mod process;
mod remote;
mod served;
mod tour;
mod trouble;
