//! Access: the rights of a request by its token, and the request rate per token.

use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use tokio::sync::watch;

use crate::problem::{Code, Problem};
use crate::tokens::{Grant, Right, Tokens};

/// The current tokens, and the recent use of each.
#[derive(Debug, Default)]
pub(crate) struct Access {
    tokens: RwLock<Option<Arc<Tokens>>>,
    used: Mutex<Vec<(Arc<str>, Bucket)>>,
    changes: watch::Sender<()>,
}

impl Access {
    pub(crate) fn set(&self, tokens: Option<Tokens>) {
        *self.tokens.write().unwrap_or_else(PoisonError::into_inner) = tokens.map(Arc::new);
        self.changes.send_replace(());
    }

    /// Completes when the tokens were replaced and a request with these headers would have other rights.
    pub(crate) async fn revoked(&self, headers: &HeaderMap, grant: &Grant) {
        let mut changes = self.changes.subscribe();
        while self.grant(headers).is_ok_and(|now| now == *grant) {
            // Never fails: the sender is here.
            let _ = changes.changed().await;
        }
    }

    /// The grant of the request's token.
    pub(crate) fn grant(&self, headers: &HeaderMap) -> Result<Grant, Problem> {
        let tokens = self.tokens.read().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(tokens) = tokens else { return Ok(Grant::everything()) };
        let mut values = headers.get_all(AUTHORIZATION).iter();
        let value = values.next().filter(|_| values.next().is_none());
        let token = value.and_then(|value| {
            let (scheme, token) = value.as_bytes().split_at_checked(7)?;
            scheme.eq_ignore_ascii_case(b"bearer ").then_some(token)
        });
        let grant = token.and_then(|token| tokens.grant(token));
        grant.cloned().ok_or_else(|| {
            let detail = "a token is needed, as `Authorization: Bearer TOKEN`";
            Problem::new(Code::Unauthorized, detail)
        })
    }

    /// Counts a request of a token. Refuses requests beyond `rate` per second.
    pub(crate) fn count(&self, name: &Arc<str>, rate: u32) -> Result<(), Problem> {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let at = used.iter().position(|(of, _)| of == name).unwrap_or_else(|| {
            used.push((name.clone(), Bucket::new(rate)));
            used.len() - 1
        });
        if used[at].1.take(rate, Instant::now()) {
            return Ok(());
        }
        let detail = format!("the token has made more than {rate} requests in a second: slow down");
        Err(Problem::new(Code::TooMany, detail))
    }
}

/// A token bucket: it refills at its rate and holds at most one second's worth.
#[derive(Debug)]
struct Bucket {
    left: f64,
    filled: Instant,
}

impl Bucket {
    fn new(rate: u32) -> Self {
        Bucket { left: rate.into(), filled: Instant::now() }
    }

    fn take(&mut self, rate: u32, now: Instant) -> bool {
        let since: Duration = now.saturating_duration_since(self.filled);
        self.left = (self.left + since.as_secs_f64() * f64::from(rate)).min(rate.into());
        self.filled = now;
        let fine = self.left >= 1.0;
        self.left -= if fine { 1.0 } else { 0.0 };
        fine
    }
}

impl Grant {
    /// Refuses if the grant lacks that right.
    pub(crate) fn must(&self, needed: Right) -> Result<(), Problem> {
        if self.right >= needed {
            return Ok(());
        }
        let detail = format!("the token may {:?}, and this needs {needed:?}", self.right);
        Err(Problem::new(Code::Forbidden, detail.to_lowercase()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_is_filled_by_its_rate() {
        let begin = Instant::now();
        let mut bucket = Bucket { left: 5.0, filled: begin };
        let at = |millis| begin + Duration::from_millis(millis);
        assert_eq!((0..9).filter(|_| bucket.take(5, at(0))).count(), 5);
        assert!(!bucket.take(5, at(199)));
        assert!(bucket.take(5, at(200)));
        assert_eq!((0..9).filter(|_| bucket.take(5, at(9000))).count(), 5);
    }
}
