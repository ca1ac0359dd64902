//! A callback that runs once and lies where it is put: it takes an allocation only if it is large.
//!
//! The one file of this crate with unsafe code. A callback of a few words lies in the node of its timer, which the
//! driver has at hand when it fires. To find it in a box of its own, and to free that, took about half of the time of
//! a timer that fires.
//!
//! Invariant: `words` holds a value of the type whose `verbs` those are; that type fits, and it is `Send`.

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
    /// As one of those, it can be sent to another thread, and not be shared with one.
    like: PhantomData<Box<dyn Send>>,
}

/// What can be done with a callback whose type is forgotten.
struct Verbs {
    type_id: fn() -> TypeId,
    /// Moves it out and calls it.
    run: unsafe fn(&Words, &Context<'_>),
    /// Drops it, if there is anything to do for that.
    drop: Option<unsafe fn(&mut Words)>,
    /// Whether it is a box, and of something that has bytes.
    bytes_behind: bool,
}

/// The verbs of a type.
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
    /// Asks whether there is anything to drop in the box, and forgets the box.
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
        // SAFETY: The words are of that type, and nobody uses or drops them after this.
        unsafe { (this.verbs.run)(&this.words, context) }
    }

    /// The callback, if it is one of that type, or a box of one.
    pub(crate) fn take<F: 'static>(self) -> Option<F> {
        let this = ManuallyDrop::new(self);
        let type_id = (this.verbs.type_id)();
        if type_id == TypeId::of::<F>() {
            // SAFETY: That is the type, and nobody uses or drops the words after this.
            return Some(unsafe { this.words.as_ptr().cast::<F>().read() });
        }
        let boxed = type_id == TypeId::of::<Box<F>>();
        if planted!("more.large-closure-is-not-given-back", false, boxed) {
            // SAFETY: As above.
            return Some(*unsafe { this.words.as_ptr().cast::<Box<F>>().read() });
        }
        drop(ManuallyDrop::into_inner(this));
        None
    }

    /// Whether it captured something that has to be dropped.
    #[inline]
    pub(crate) fn needs_drop(&self) -> bool {
        self.verbs.drop.is_some()
    }

    /// Reads a byte of the callback's memory, so that it is near when the callback runs.
    #[inline]
    pub(crate) fn touch(&self) {
        if self.verbs.bytes_behind {
            // SAFETY: The words are a box, which is a pointer, and there is a byte behind it, whatever that is. Nobody
            // writes to it: the callback came by value, and who takes it out takes this.
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
            // SAFETY: The words are of that type: who takes them does not drop this.
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
    // SAFETY: It fits.
    unsafe { words.as_mut_ptr().cast::<V>().write(value) };
    words
}

/// # Safety
/// The words are a `V`, and are not used after this.
unsafe fn call<V: FnOnce(&Context<'_>)>(words: &Words, context: &Context<'_>) {
    // SAFETY: The caller's promise.
    let callback = unsafe { words.as_ptr().cast::<V>().read() };
    callback(context);
}

const fn dropping<V>() -> Option<unsafe fn(&mut Words)> {
    if needs_drop::<V>() { Some(destroy::<V>) } else { None }
}

/// # Safety
/// The words are a `V`, and are not used after this.
unsafe fn destroy<V>(words: &mut Words) {
    // SAFETY: The caller's promise.
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
        // Two words, which may not lie where a word may.
        let wide = 0_u128;
        assert_eq!(is_far(move |_| assert_eq!(wide, 0)), align_of::<u128>() > align_of::<usize>());
    }

    #[test]
    #[cfg(target_pointer_width = "64")]
    fn a_task_is_no_larger_for_it() {
        assert_eq!((size_of::<Inline>(), size_of::<Option<Task>>()), (24, 32));
    }
}
