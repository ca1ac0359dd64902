//! An intrusive doubly linked wheel: a representative of those written in C and C++.
//!
//! A timer is a node at a fixed address, which is its key. A slot is the head of a ring of nodes: a cancel joins the
//! two neighbours without looking for the slot, and a start links the node at the end of the ring. There are 8 levels
//! of 256 slots, 8 bits each. The nodes in a slot that the hand of an upper level reaches cascade one level at a time.
//! Nodes come from blocks that live as long as the wheel, because a C program would embed them in its own structures.
//! The node freed last is used next.
//!
//! Unlike our wheels, it trusts its caller: using a key twice is undefined behaviour. It has no bitmap, so it finds the
//! next event by scanning the slots.
#![allow(unsafe_code)]

use std::ptr::{self, NonNull};

use crate::league::Kind;
use crate::wheel::contestant::{Contestant, Next};

const BITS: u32 = 8;
const SLOTS: usize = 1 << BITS;
const LEVELS: usize = 8;
/// The number of nodes in a block.
const BLOCK: usize = 4096;

/// A member of a ring. The head of a ring is just a link.
#[repr(C)]
struct Link {
    next: *mut Link,
    prev: *mut Link,
}

#[repr(C)]
struct Node {
    /// The first field, so that the address of a link is that of its node.
    link: Link,
    due: u64,
    payload: u32,
}

pub struct Intrusive {
    now: u64,
    slots: Box<[[Link; SLOTS]; LEVELS]>,
    /// The free nodes, linked by `next`.
    free: *mut Link,
    blocks: Vec<Vec<Node>>,
}

/// The address of a pending timer's node.
pub struct Address(NonNull<Node>);

/// Makes a head the only member of its ring.
///
/// # Safety
///
/// `head` is alive, and no other code uses it.
unsafe fn reset(head: *mut Link) {
    // SAFETY: the caller's promise.
    unsafe { ((*head).next, (*head).prev) = (head, head) };
}

/// Removes a member from its ring.
///
/// # Safety
///
/// `link` is in a ring whose members are all alive, and no other code uses the ring.
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
    /// Links a node at the end of its slot's ring.
    ///
    /// The highest bit in which its deadline differs from now determines the level. Only a cascade may link a node that
    /// is due now: it gets into the current slot, which is then drained.
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

    /// Empties the current slot of a level and calls `visit` for each node, which may link the node elsewhere.
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

    /// The next moment at which a non-empty slot begins.
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

    /// Moves the hand to `now`. No non-empty slot may begin before.
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
        // In reverse, so that the first node is used first.
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
    /// A timer cannot be due now: the current slot has already been drained.
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
        // SAFETY: the harness cancels only pending timers, so the node is in a ring.
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
            // Searching for the next event costs more than one tick.
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
