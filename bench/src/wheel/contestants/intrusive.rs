//! An intrusive doubly linked wheel, like those written in C and C++: it stands for them in every row.
//!
//! A timer is a node of its own in memory that does not move, and its key is the node's address. A slot is the head of
//! a ring of nodes: a cancel unlinks two neighbours without looking for the slot, a start links behind the head. 256
//! slots a level, 8 bits apart, 8 levels; what reaches the hand of an upper level is handed down one level at a time.
//! The nodes come from blocks that are never given back before the wheel, as a C program would embed them in its own
//! structures; a free one is the next to be used.
//!
//! Unlike ours it trusts its caller: a key that is used twice is undefined behaviour, and there is no bitmap, so the
//! next event is found by looking through the slots.
#![allow(unsafe_code)]

use std::ptr::{self, NonNull};

use crate::league::Kind;
use crate::wheel::contestant::{Contestant, Next};

const BITS: u32 = 8;
const SLOTS: usize = 1 << BITS;
const LEVELS: usize = 8;
/// Nodes of one block.
const BLOCK: usize = 4096;

/// A member of a ring. The head of one is a link alone.
#[repr(C)]
struct Link {
    next: *mut Link,
    prev: *mut Link,
}

#[repr(C)]
struct Node {
    /// First, so that the address of a link is that of its node.
    link: Link,
    due: u64,
    payload: u32,
}

pub struct Intrusive {
    now: u64,
    slots: Box<[[Link; SLOTS]; LEVELS]>,
    /// Nodes that are free, linked by `next`.
    free: *mut Link,
    blocks: Vec<Vec<Node>>,
}

/// The address of a pending timer's node.
pub struct Address(NonNull<Node>);

/// Makes a head the only member of its ring.
///
/// # Safety
///
/// `head` is alive, and nobody else uses it.
unsafe fn reset(head: *mut Link) {
    // SAFETY: the caller's promise.
    unsafe { ((*head).next, (*head).prev) = (head, head) };
}

/// Takes a member out of its ring.
///
/// # Safety
///
/// `link` is in a ring whose members are all alive, and nobody else uses the ring.
#[inline(always)]
unsafe fn unlink(link: *mut Link) {
    // SAFETY: the caller's promise: `link` and both neighbours are alive.
    unsafe {
        let (next, prev) = ((*link).next, (*link).prev);
        (*prev).next = next;
        (*next).prev = prev;
    }
}

impl Intrusive {
    /// Links a node behind the others of its slot: the highest bit in which its deadline differs from now names the
    /// level. One that is due now is in the slot of the present, which only a cascade may do.
    ///
    /// # Safety
    ///
    /// `node` is alive, of this wheel and in no ring.
    #[inline(always)]
    unsafe fn link(&mut self, node: *mut Node) {
        // SAFETY: the caller's promise: the node is alive.
        let due = unsafe { (*node).due };
        let level = (((due ^ self.now) | 1).ilog2() / BITS) as usize;
        let slot = (due >> (level as u32 * BITS)) as usize % SLOTS;
        let head: *mut Link = &raw mut self.slots[level][slot];
        let link: *mut Link = node.cast();
        // SAFETY: the head and its neighbour are alive, as every ring holds live nodes only.
        unsafe {
            let last = (*head).prev;
            (*link).next = head;
            (*link).prev = last;
            (*last).next = link;
            (*head).prev = link;
        }
    }

    /// Empties a ring; its former members, each already free to be linked elsewhere.
    #[inline(always)]
    fn drain(&mut self, level: usize, mut visit: impl FnMut(&mut Self, *mut Node)) {
        let slot = (self.now >> (level as u32 * BITS)) as usize % SLOTS;
        let head: *mut Link = &raw mut self.slots[level][slot];
        // SAFETY: the head is alive.
        let (mut link, last) = unsafe { ((*head).next, (*head).prev) };
        if link == head {
            return;
        }
        // SAFETY: `slots` is alive and borrowed by this call alone.
        unsafe { reset(head) };
        loop {
            // SAFETY: `link` is alive, and its successor is read before it is linked elsewhere.
            let next = unsafe { (*link).next };
            visit(self, link.cast());
            if link == last {
                return;
            }
            link = next;
        }
    }

    /// The next moment at which a slot that is not empty begins.
    fn next_event(&self) -> Option<u64> {
        for (level, slots) in self.slots.iter().enumerate() {
            let shift = level as u32 * BITS;
            let hand = (self.now >> shift) as usize % SLOTS;
            let ahead = slots[hand + 1..].iter().position(|head| !ptr::eq(head.next, head));
            if let Some(ahead) = ahead {
                return Some(((self.now >> shift) + ahead as u64 + 1) << shift);
            }
        }
        None
    }

    /// Moves the hand; no slot that is not empty begins before.
    fn step_to(&mut self, now: u64, fire: &mut impl FnMut(u32)) {
        self.now = now;
        let levels = (now.trailing_zeros() / BITS) as usize;
        for level in (1..=levels.min(LEVELS - 1)).rev() {
            // SAFETY: a drained node is alive, of this wheel and in no ring.
            self.drain(level, |wheel, node| unsafe { wheel.link(node) });
        }
        self.drain(0, |wheel, node| {
            // SAFETY: a drained node is alive.
            fire(unsafe { (*node).payload });
            wheel.give_back(node.cast());
        });
    }

    #[inline(always)]
    fn give_back(&mut self, link: *mut Link) {
        // SAFETY: the node is alive, as blocks live as long as the wheel, and it is in no ring any more.
        unsafe { (*link).next = self.free };
        self.free = link;
    }

    #[cold]
    fn grow(&mut self) {
        let node = |_| {
            let link = Link { next: ptr::null_mut(), prev: ptr::null_mut() };
            Node { link, due: 0, payload: 0 }
        };
        let mut block: Vec<Node> = (0..BLOCK).map(node).collect();
        // The first of them is used first.
        for node in block.iter_mut().rev() {
            self.give_back((&raw mut *node).cast());
        }
        self.blocks.push(block);
    }
}

impl Contestant for Intrusive {
    type Key = Address;
    const NAME: &'static str = "intrusive linked wheel";
    const KIND: Kind = Kind::Peer;
    const SETTINGS: &'static str =
        "ours, like the wheels of C and C++: unsafe, doubly linked nodes, 256 slots a level";
    /// There is no slot for the present.
    const DELAYS: (u64, u64) = (1, 1 << 40);

    fn new(_expected: usize) -> Self {
        let link = || Link { next: ptr::null_mut(), prev: ptr::null_mut() };
        let level = || std::array::from_fn(|_| link());
        let mut slots: Box<[[Link; SLOTS]; LEVELS]> = Box::new(std::array::from_fn(|_| level()));
        for head in slots.iter_mut().flatten() {
            // SAFETY: the heads have their final place, in the box.
            unsafe { reset(head) };
        }
        Intrusive { now: 0, slots, free: ptr::null_mut(), blocks: Vec::new() }
    }

    #[inline]
    fn start(&mut self, due: u64, payload: u32) -> Address {
        if self.free.is_null() {
            self.grow();
        }
        let node: *mut Node = self.free.cast();
        // SAFETY: `free` links nodes of `blocks`, which are alive and in no ring, and `grow` has added some.
        unsafe {
            self.free = (*node).link.next;
            (*node).due = due.max(self.now + 1);
            (*node).payload = payload;
            self.link(node);
            Address(NonNull::new_unchecked(node))
        }
    }

    #[inline]
    fn cancel(&mut self, key: Address) -> Option<u32> {
        let node = key.0.as_ptr();
        // SAFETY: the harness cancels pending timers only, so the node is in a ring.
        let payload = unsafe {
            unlink(node.cast());
            (*node).payload
        };
        self.give_back(node.cast());
        Some(payload)
    }

    #[inline]
    fn reschedule(&mut self, key: Address, due: u64) -> Address {
        let node = key.0.as_ptr();
        // SAFETY: as in `cancel`; once unlinked, it is in no ring.
        unsafe {
            unlink(node.cast());
            (*node).due = due.max(self.now + 1);
            self.link(node);
        }
        key
    }

    #[inline]
    fn advance(&mut self, now: u64, fire: &mut impl FnMut(u32)) {
        while self.now < now {
            // Looking for the next event costs more than a tick.
            let next = if now - self.now == 1 { Some(now) } else { self.next_event() };
            match next {
                Some(next) if next <= now => self.step_to(next, fire),
                _ => self.now = now,
            }
        }
    }

    fn next_bound(&mut self) -> Next {
        self.next_event().into()
    }
}
