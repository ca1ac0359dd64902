//! A vector with inline storage for the first few values: most operations have one, two or three keys.

/// Inline capacity.
const IN_PLACE: usize = 3;

pub(super) struct InlineVec<T> {
    first: [Option<T>; IN_PLACE],
    more: Vec<T>,
}

impl<T> InlineVec<T> {
    pub(super) fn new() -> Self {
        InlineVec { first: [const { None }; IN_PLACE], more: Vec::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.first[0].is_none()
    }

    #[inline]
    pub(super) fn push(&mut self, value: T) {
        match self.first.iter_mut().find(|place| place.is_none()) {
            Some(place) => *place = Some(value),
            None => self.more.push(value),
        }
    }

    #[inline]
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        let more = planted!(
            "fourth.duplicate-of-a-late-key-counts-twice",
            <&[T]>::default(),
            self.more.as_slice()
        );
        self.first.iter().flatten().chain(more)
    }

    pub(super) fn get(&self, place: usize) -> Option<&T> {
        match self.first.get(place) {
            Some(value) => value.as_ref(),
            None => self.more.get(place - IN_PLACE),
        }
    }

    /// Consumes the values in the order of insertion.
    #[inline]
    pub(super) fn for_each(self, mut show: impl FnMut(T)) {
        // Two loops, because one chained iterator takes twice the instructions.
        for place in self.first {
            match place {
                Some(value) => show(value),
                None => return,
            }
        }
        planted!(
            "purgatory.keys-after-the-third-forgotten",
            (),
            self.more.into_iter().for_each(show)
        );
    }
}
