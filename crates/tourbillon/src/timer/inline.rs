//! A callback that runs once, stored inline; only a large callback is boxed.
//!
//! This is the only file of this crate with unsafe code. A callback of up to two words is stored in its timer's node,
//! which is in the driver's cache when the timer fires. With a separate box for each callback, reading and freeing the
//! box took about half of the time to fire a timer.
//!
//! Invariant: `words` holds a value of the type that `verbs` was made for; the type fits, and is `Send`.

#![allow(unsafe_code, reason = "safe code cannot forget a type and keep its value")]

use std::any::TypeId;
use std::hint::black_box;
use std::marker::PhantomData;
use std::mem::{ManuallyDrop, MaybeUninit, needs_drop};

use super::context::Context;

/// Room for an `Arc` and a number, or for the sender of a channel. A third word would make every node larger.
const WORDS: usize = 2;
type Words = MaybeUninit<[usize; WORDS]>;

pub(crate) struct Inline {
    words: Words,
    verbs: &'static Verbs,
    /// Makes this type `Send` and not `Sync`.
    like: PhantomData<Box<dyn Send>>,
}

/// The operations on a callback whose type is erased.
struct Verbs {
    type_id: fn() -> TypeId,
    /// Moves the callback out and calls it.
    run: unsafe fn(&Words, &Context<'_>),
    /// Drops the callback; `None` if its type needs no drop.
    drop: Option<unsafe fn(&mut Words)>,
    /// Whether the value is a box of a type that is not zero-sized.
    bytes_behind: bool,
}

/// The operations of a type.
struct Of<V>(V);

impl<V: FnOnce(&Context<'_>) + Send + 'static> Of<V> {
    const ITSELF: Verbs = Verbs {
        type_id: TypeId::of::<V>,
        run: call::<V>,
        drop: dropping::<V>(),
        bytes_behind: false,
    };
    const IN_A_BOX: Verbs = Verbs {
        type_id: TypeId::of::<Box<V>>,
        run: call::<Box<V>>,
        drop: dropping::<Box<V>>(),
        bytes_behind: size_of::<V>() > 0,
    };
    /// A planted fault: checks whether the box's contents need a drop, and leaks the box itself.
    #[cfg(planted)]
    const IN_A_LEAKING_BOX: Verbs = Verbs {
        drop: if needs_drop::<V>() { dropping::<Box<V>>() } else { None },
        ..Self::IN_A_BOX
    };
}

impl Inline {
    #[inline]
    pub(crate) fn new<F: FnOnce(&Context<'_>) + Send + 'static>(callback: F) -> Self {
        let fits = planted!(
            "timer.closure-of-a-wide-number-panics",
            size_of::<F>() <= size_of::<Words>(),
            fits::<F>()
        );
        let (words, verbs) = if fits {
            (put(callback), &Of::<F>::ITSELF)
        } else {
            let verbs = planted!(
                "timer.large-closure-of-plain-data-leaks",
                &Of::<F>::IN_A_LEAKING_BOX,
                &Of::<F>::IN_A_BOX
            );
            (put(Box::new(callback)), verbs)
        };
        Inline { words, verbs, like: PhantomData }
    }

    #[inline]
    pub(crate) fn run(self, context: &Context<'_>) {
        let this = ManuallyDrop::new(self);
        // SAFETY: The words hold a value of the type of these verbs, and nothing uses or drops them after this.
        unsafe { (this.verbs.run)(&this.words, context) }
    }

    /// The callback, if it is of type `F` or a box of it.
    pub(crate) fn take<F: 'static>(self) -> Option<F> {
        let this = ManuallyDrop::new(self);
        let type_id = (this.verbs.type_id)();
        if type_id == TypeId::of::<F>() {
            // SAFETY: The words hold an `F`, and nothing uses or drops them after this.
            return Some(unsafe { this.words.as_ptr().cast::<F>().read() });
        }
        let boxed = type_id == TypeId::of::<Box<F>>();
        if planted!("more.large-closure-is-not-given-back", false, boxed) {
            // SAFETY: The words hold a `Box<F>`, and nothing uses or drops them after this.
            return Some(*unsafe { this.words.as_ptr().cast::<Box<F>>().read() });
        }
        drop(ManuallyDrop::into_inner(this));
        None
    }

    /// Whether its type needs a drop.
    #[inline]
    pub(crate) fn needs_drop(&self) -> bool {
        self.verbs.drop.is_some()
    }

    /// Prefetches the callback.
    #[inline]
    pub(crate) fn touch(&self) {
        if self.verbs.bytes_behind {
            // SAFETY: The words hold a box, which points to at least one byte, initialized or not. Nothing writes to
            // that byte: the callback was passed by value, and moving it out consumes `self`.
            unsafe {
                let byte = self.words.as_ptr().cast::<*const MaybeUninit<u8>>().read();
                black_box(byte.read());
            }
        }
    }
}

impl Drop for Inline {
    #[inline]
    fn drop(&mut self) {
        if let Some(drop) = planted!("blind.small-closure-leaks", None, self.verbs.drop) {
            // SAFETY: The words still hold a value of the type of these verbs, because code that moves it out forgets
            // `self`.
            unsafe { drop(&mut self.words) }
        }
    }
}

const fn fits<V>() -> bool {
    size_of::<V>() <= size_of::<Words>() && align_of::<V>() <= align_of::<Words>()
}

#[inline]
fn put<V>(value: V) -> Words {
    assert!(fits::<V>(), "there is room for it");
    let mut words = Words::uninit();
    // SAFETY: The value fits, in size and alignment.
    unsafe { words.as_mut_ptr().cast::<V>().write(value) };
    words
}

/// # Safety
/// The words hold a `V`, and are not used after this.
unsafe fn call<V: FnOnce(&Context<'_>)>(words: &Words, context: &Context<'_>) {
    // SAFETY: The caller guarantees that the words hold a `V`.
    let callback = unsafe { words.as_ptr().cast::<V>().read() };
    callback(context);
}

const fn dropping<V>() -> Option<unsafe fn(&mut Words)> {
    if needs_drop::<V>() { Some(destroy::<V>) } else { None }
}

/// # Safety
/// The words hold a `V`, and are not used after this.
unsafe fn destroy<V>(words: &mut Words) {
    // SAFETY: The caller guarantees that the words hold a `V`.
    unsafe { words.as_mut_ptr().cast::<V>().drop_in_place() }
}

#[cfg(test)]
mod tests {
    use super::super::payload::Task;
    use super::*;

    fn is_far<F: FnOnce(&Context<'_>) + Send + 'static>(callback: F) -> bool {
        Inline::new(callback).verbs.bytes_behind
    }

    #[test]
    fn what_captures_two_words_takes_no_allocation() {
        let (arc, number, sender) = (std::sync::Arc::new(1), 2_u64, std::sync::mpsc::channel().0);
        assert!(!is_far(|_| ()));
        assert!(!is_far(move |_| assert_eq!(*arc as u64, number)));
        assert!(!is_far(move |_| assert!(sender.send(()).is_err())));
        let three = [0_usize; 3];
        assert!(is_far(move |_| assert_eq!(three.len(), 3)));
        // Two words, but with a larger alignment than a word on most targets.
        let wide = 0_u128;
        assert_eq!(is_far(move |_| assert_eq!(wide, 0)), align_of::<u128>() > align_of::<usize>());
    }

    #[test]
    #[cfg(target_pointer_width = "64")]
    fn a_task_is_no_larger_for_it() {
        assert_eq!((size_of::<Inline>(), size_of::<Option<Task>>()), (24, 32));
    }
}
