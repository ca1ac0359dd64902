//! What names a timer for those who keep millions.

use std::fmt;

use tourbillon_wheel as wheel;

/// Names one timer of one engine, for ever. `Copy`, 24 bytes, and it keeps nothing alive.
///
/// It knows only whether its timer is pending. Once the timer has started, been cancelled or been handed back, every
/// verb answers "no" to its key, whatever has happened since; and so does every other engine.
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
        // The wheel is the shard's own: its number says which.
        self.inner.fmt(f)
    }
}
