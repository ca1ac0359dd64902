//! The store on disk under faults: damage, other processes, kill -9, missing permissions, a full disk.
//!
//! | module | what it does to the store |
//! |---|---|
//! | `opening` | a lock, permissions, a read-only disk, another format |
//! | `damage` | flipped bytes, a truncated file |
//! | `check` | checking and repairing |
//! | `compact` | compaction, and kill -9 during it |
//! | `kill` | kill -9 of a process that commits |
//! | `log` | a crash before redb has flushed, and a log that is damaged |
//! | `full` | a disk that is full, and then has space again |
//! | `discard` | a queue is cleared, and the process ends before its rows are removed |
//! | `sweep` | the space of removed rows is reclaimed |

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
