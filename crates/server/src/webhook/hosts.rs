//! Limits per webhook host: the number of posts, of connections, and of deliveries that wait for a post to end.
//!
//! A connection counts until its socket is closed, even while it is idle. The limits of posts and of connections are
//! the same, so a post finds an idle connection or may make a new one. A delivery that finds too many posts to its host
//! waits in memory, if fewer deliveries wait for its host than places are free for all hosts. So a host that does not
//! answer never takes every place. Any further delivery is released to the store. It is due again when the host is
//! expected to have a free connection, estimated from the duration of its posts.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use axum::http::Uri;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::address::literal;

/// The shortest and the longest delay of a released delivery.
const SHORTEST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(300);
/// The assumed duration of a post until one has ended.
const UNKNOWN: Duration = Duration::from_secs(1);

/// Maximum number of lookups of one name at once. A name whose servers do not answer leaves the others to other hosts.
const LOOKUPS: usize = 4;

/// The hosts with posts in progress or connections.
pub(super) struct Hosts {
    /// Maximum number of connections to each.
    most: usize,
    all: Mutex<HashMap<String, Weak<Host>>>,
}

/// A host with posts in progress or connections.
pub(super) struct Host {
    posts: Arc<Semaphore>,
    /// Held by the sockets.
    pub(super) sockets: Arc<Semaphore>,
    /// Held by the lookups of its name.
    pub(super) lookups: Arc<Semaphore>,
    most: usize,
    line: Mutex<Line>,
}

/// The deliveries that wait for a host, both in memory and released.
struct Line {
    waiting: usize,
    /// The mean duration of posts; `None` until one has ended.
    mean: Option<Duration>,
    /// When the last post ended, or the first one arrived.
    ended: Instant,
    /// When the last released delivery is due again.
    last: Instant,
}

impl Hosts {
    pub(super) fn new(most: usize) -> Self {
        Hosts { most: most.max(1), all: Mutex::default() }
    }

    /// The host of a URL.
    pub(super) fn of(&self, url: &str) -> Arc<Host> {
        self.named(url.parse().ok().and_then(|uri| name(&uri)).unwrap_or_default())
    }

    /// The host of a parsed URL.
    pub(super) fn of_uri(&self, uri: &Uri) -> Arc<Host> {
        self.named(name(uri).unwrap_or_default())
    }

    fn named(&self, name: String) -> Arc<Host> {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(host) = all.get(&name).and_then(Weak::upgrade) {
            return host;
        }
        all.retain(|_, host| host.strong_count() > 0);
        let now = Instant::now();
        let line = Mutex::new(Line { waiting: 0, mean: None, ended: now, last: now });
        let [posts, sockets] = [(); 2].map(|()| Arc::new(Semaphore::new(self.most)));
        let lookups = Arc::new(Semaphore::new(LOOKUPS));
        let host = Arc::new(Host { posts, sockets, lookups, most: self.most, line });
        all.insert(name, Arc::downgrade(&host));
        host
    }
}

/// One name for all spellings of a scheme, a host and a port.
fn name(uri: &Uri) -> Option<String> {
    let uri = one_spelling(uri)?;
    Some(format!("{}://{}", uri.scheme_str()?, uri.authority()?))
}

/// The URL with one spelling of its host and port, so that all spellings share idle connections.
pub(super) fn one_spelling(uri: &Uri) -> Option<Uri> {
    let (scheme, host) = (uri.scheme_str()?, uri.host()?);
    let usual = if scheme == "https" { 443 } else { 80 };
    let host = match literal(host).map(|address| address.to_canonical()) {
        Some(IpAddr::V4(address)) => address.to_string(),
        Some(IpAddr::V6(address)) => format!("[{address}]"),
        None => host.trim_end_matches('.').to_ascii_lowercase(),
    };
    let port = uri.port_u16().filter(|port| *port != usual);
    let authority = port.map_or(host.clone(), |port| format!("{host}:{port}"));
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    Uri::builder().scheme(scheme).authority(authority).path_and_query(path).build().ok()
}

impl Host {
    /// A permit to post, if one is free.
    pub(super) fn post(&self) -> Option<OwnedSemaphorePermit> {
        self.posts.clone().try_acquire_owned().ok()
    }

    /// Waits for a permit to post if fewer than `free` deliveries wait; otherwise returns `None`.
    pub(super) async fn wait(&self, free: usize) -> Option<OwnedSemaphorePermit> {
        let _waits = Waits::new(self, free)?;
        self.posts.clone().acquire_owned().await.ok()
    }

    /// How long to release a delivery for. It is due after the deliveries released before it.
    pub(super) fn later(&self) -> Duration {
        self.line().later(self.most, Instant::now())
    }

    /// Records the duration of a post that has ended.
    pub(super) fn ended(&self, took: Duration) {
        self.line().ended(took, Instant::now());
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts a waiting delivery until it is dropped.
struct Waits<'a>(&'a Host);

impl<'a> Waits<'a> {
    fn new(host: &'a Host, free: usize) -> Option<Self> {
        let mut line = host.line();
        if line.waiting >= free {
            return None;
        }
        line.waiting += 1;
        Some(Waits(host))
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.line().waiting -= 1;
    }
}

impl Line {
    fn later(&mut self, most: usize, now: Instant) -> Duration {
        // If no post has ended for longer than the mean duration, the host has become slower.
        let silent = now.saturating_duration_since(self.ended);
        let each = self.mean.unwrap_or(UNKNOWN).max(silent) / most as u32;
        self.last = (self.last.max(now) + each).min(now + LONGEST);
        (self.last - now).max(SHORTEST)
    }

    fn ended(&mut self, took: Duration, now: Instant) {
        self.mean = Some(self.mean.map_or(took, |mean| (mean * 7 + took) / 8));
        self.ended = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_a_host_are_one() {
        let name = |url: &str| name(&url.parse().unwrap()).unwrap();
        for url in ["http://EXAMPLE.com/a", "http://example.com:80/b?c", "http://example.com.:80/"]
        {
            assert_eq!(name(url), name("http://example.com"), "{url}");
        }
        for url in ["http://127.1/", "http://0x7f000001:80", "http://[::ffff:127.0.0.1]/"] {
            assert_eq!(name(url), name("http://127.0.0.1"), "{url}");
        }
        for url in ["https://example.com", "http://example.com:8080", "http://www.example.com"] {
            assert_ne!(name(url), name("http://example.com"), "{url}");
        }
        for (url, one) in [
            ("http://EXAMPLE.com.:80", "http://example.com/"),
            ("https://example.com:80/a?b", "https://example.com:80/a?b"),
            ("https://0177.1:443/", "https://127.0.0.1/"),
            ("http://[::0:1]:81/", "http://[::1]:81/"),
        ] {
            assert_eq!(one_spelling(&url.parse().unwrap()).unwrap().to_string(), one, "{url}");
        }
        let hosts = Hosts::new(1);
        let held = hosts.of("http://example.com").post();
        assert!(held.is_some());
        // The host was forgotten, because nothing else keeps it alive.
        assert!(hosts.of("http://Example.com:80").post().is_some());
        let host = hosts.of("http://example.com");
        let held = host.post();
        assert!(held.is_some() && hosts.of("http://Example.com:80").post().is_none());
    }

    #[test]
    fn what_is_given_back_comes_again_one_after_the_other() {
        let now = Instant::now();
        let mut line = Line { waiting: 0, mean: None, ended: now, last: now };
        let later = |line: &mut Line, count: u64, now| {
            (0..count).map(|_| line.later(10, now)).last().unwrap()
        };
        assert_eq!(later(&mut line, 1, now), Duration::from_millis(100));
        assert_eq!(
            later(&mut line, 99, now),
            Duration::from_secs(10),
            "a second each, ten at once"
        );
        let mut fast = Line { waiting: 0, mean: None, ended: now, last: now };
        fast.ended(Duration::from_millis(5), now);
        assert_eq!(later(&mut fast, 1000, now), Duration::from_millis(500));
        // The host stops answering.
        let now = now + Duration::from_secs(10);
        assert_eq!(later(&mut fast, 10, now), Duration::from_secs(10));
        assert_eq!(later(&mut fast, 100_000, now), LONGEST);
    }
}
