//! The store on disk under what happens to disks: damage, other processes, kill -9, no right to write, no room.
//!
//! | module | what it does to the store |
//! |---|---|
//! | `opening` | a lock, rights, a read-only disk, another format |
//! | `damage` | flipped bytes, a file that was cut |
//! | `check` | what is checked and repaired |
//! | `compact` | a file that is copied into a smaller one, and kill -9 meanwhile |
//! | `kill` | kill -9 of a process that commits |
//! | `log` | a crash before redb has flushed, and a log that is damaged |
//! | `full` | a disk without room, and room again |
//! | `discard` | a queue that was cleared, before its rows are gone |
//! | `sweep` | what removed rows take is given back |

mod check;
mod compact;
mod damage;
mod discard;
mod full;
mod kill;
mod log;
mod opening;
mod scratch;
mod sweep;
