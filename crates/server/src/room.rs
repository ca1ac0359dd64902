//! Room: limits the bytes of requests and answers that the server holds at once.
//!
//! The first [`SMALL`] bytes of each request or answer are not counted: connections are limited, and each holds one
//! request. The bytes beyond them are counted: for a body from the first byte read until the request is answered, for
//! an answer until its last byte is being sent. So clients that send slowly or do not read cannot exhaust memory, and
//! small requests are still served.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes};
use axum::response::{IntoResponse, Response};
use http_body::{Body as _, Frame, SizeHint};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::problem::{Code, Problem};

/// The first bytes of each request or answer, which are not counted.
pub(crate) const SMALL: usize = 16 << 10;

/// Marks an answer whose change is undone if the answer is not sent, so that refusing it loses no change.
#[derive(Clone, Copy)]
pub(crate) struct Revocable;

/// Permits for the bytes of requests and answers.
#[derive(Clone)]
pub(crate) struct Room {
    free: Arc<Semaphore>,
    most: usize,
}

/// Permits held for some bytes.
#[derive(Default)]
pub(crate) struct Place(Option<OwnedSemaphorePermit>);

impl Room {
    pub(crate) fn new(most: usize) -> Self {
        let most = most.min(u32::MAX as usize).min(Semaphore::MAX_PERMITS);
        Room { free: Arc::new(Semaphore::new(most)), most }
    }

    /// Grows `place` to that many bytes.
    pub(crate) fn grow(&self, place: &mut Place, bytes: usize) -> Result<(), Problem> {
        // A request that is larger than the whole limit takes all of it.
        let counted = bytes.saturating_sub(SMALL).min(self.most);
        let held = place.0.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let Some(more) = counted.checked_sub(held).filter(|&more| more > 0) else { return Ok(()) };
        let more = self.free.clone().try_acquire_many_owned(more as u32).map_err(|_| {
            let detail =
                "the server holds its most bytes of requests and answers: ask for less, or try later";
            Problem::new(Code::TooMany, detail)
        })?;
        match &mut place.0 {
            Some(held) => held.merge(more),
            None => place.0 = Some(more),
        }
        Ok(())
    }

    /// Counts the bytes of an answer until it is sent.
    ///
    /// Refuses the answer if the limit is reached, unless the answer reports a change, because the change has already
    /// happened.
    pub(crate) fn hold(&self, response: Response, tells_of_change: bool) -> Response {
        let size = response.body().size_hint().exact();
        let Some(size) = size.and_then(|size| usize::try_from(size).ok()) else { return response };
        let mut place = Place::default();
        match self.grow(&mut place, size) {
            Err(problem) if !tells_of_change => problem.into_response(),
            _ if place.0.is_none() => response,
            _ => response.map(|inner| Body::new(Held { inner, place })),
        }
    }
}

/// A body whose bytes hold their permits until they are sent.
struct Held {
    inner: Body,
    place: Place,
}

/// Bytes and their permits, freed together with the last reference to the bytes.
struct Placed {
    bytes: Bytes,
    _place: Place,
}

impl AsRef<[u8]> for Placed {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl http_body::Body for Held {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let Some(frame) = ready!(Pin::new(&mut self.inner).poll_frame(context)) else {
            return Poll::Ready(None);
        };
        let place = std::mem::take(&mut self.place);
        // An answer with a known length arrives as one frame.
        let placed = |bytes| Bytes::from_owner(Placed { bytes, _place: place });
        Poll::Ready(Some(frame.map(|frame| frame.map_data(placed))))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_ones_are_not_counted_and_large_ones_are_until_they_are_sent() {
        let room = Room::new(100);
        let mut places: Vec<Place> = (0..1000).map(|_| Place::default()).collect();
        places.iter_mut().for_each(|place| room.grow(place, SMALL).unwrap());
        let mut place = Place::default();
        for bytes in [SMALL + 10, SMALL + 60, SMALL + 60, SMALL + 20] {
            room.grow(&mut place, bytes).unwrap();
        }
        assert_eq!(room.free.available_permits(), 40);
        let mut other = Place::default();
        assert_eq!(room.grow(&mut other, SMALL + 41).unwrap_err().code, Code::TooMany);
        drop(place);
        // Larger than the limit: admitted only alone.
        room.grow(&mut other, SMALL + 1_000_000).unwrap();
        assert_eq!(room.free.available_permits(), 0);

        let answer = || "x".repeat(SMALL + 50).into_response();
        assert_eq!(room.hold(answer(), false).status(), 429);
        assert_eq!(room.hold(answer(), true).status(), 200);
        drop(other);
        let mut held = room.hold(answer(), false).into_body();
        assert_eq!(held.size_hint().exact(), Some(SMALL as u64 + 50));
        let mut context = Context::from_waker(std::task::Waker::noop());
        let Poll::Ready(Some(Ok(frame))) = Pin::new(&mut held).poll_frame(&mut context) else {
            panic!("a frame");
        };
        drop(held);
        assert_eq!(room.free.available_permits(), 50, "its bytes are on their way");
        drop(frame);
        assert_eq!(room.free.available_permits(), 100);
    }
}
