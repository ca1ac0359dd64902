//! The key of a timer, for callers with millions of timers and no handles.

use std::fmt;

use tourbillon_wheel as wheel;

/// Identifies one timer of one engine, forever.
///
/// `Copy`, 24 bytes; it keeps nothing alive.
///
/// A key works while its timer is pending. Once the timer has started, was cancelled or was handed back, every
/// operation on the key reports that there is no such timer, no matter which timers are armed later. The same holds for
/// a key of another engine.
///
/// ```
/// use std::time::Duration;
/// use tourbillon::Timer;
///
/// let timer = Timer::new();
/// let key = timer.arm(Duration::from_secs(60), |_| ())?;
/// assert!(timer.cancel(key));
/// assert!(!timer.cancel(key), "gone");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    inner: wheel::Key,
    shard: u32,
}

impl Key {
    #[inline]
    pub(crate) fn new(shard: usize, inner: wheel::Key) -> Self {
        Key { inner, shard: planted!("key.shard-in-a-byte", u32::from(shard as u8), shard as u32) }
    }

    #[inline]
    pub(crate) fn shard(self) -> usize {
        self.shard as usize
    }

    #[inline]
    pub(crate) fn inner(self) -> wheel::Key {
        self.inner
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The inner key contains the wheel's number, which identifies the shard.
        self.inner.fmt(f)
    }
}
