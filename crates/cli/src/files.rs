//! The number of files that the process may open: a connection is one.

use tourbillon_server::{Connections, Webhooks};

/// Files that are no connections of clients or webhooks: the store, the log, lookups of names.
const OTHERS: usize = 128;

/// Raises the limit as far as the system allows. Returns it.
#[cfg(unix)]
pub(crate) fn raise() -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    // A system may refuse its own maximum; then the limit stays as it is.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
    let now = getrlimit(Resource::Nofile).current;
    now.map_or(usize::MAX, |now| usize::try_from(now).unwrap_or(usize::MAX))
}

/// Other systems have no such limit.
#[cfg(not(unix))]
pub(crate) fn raise() -> usize {
    usize::MAX
}

/// Fewer connections than this are reported: a server that is used may need more.
const FEW: usize = 1024;

/// Lowers the limits of connections so that all of them fit. Says so if few are left.
pub(crate) fn share(files: usize, connections: &mut Connections, webhooks: &mut Webhooks) {
    let left = files.saturating_sub(OTHERS);
    // Webhooks have two connections for each post.
    if connections.most.saturating_add(webhooks.most.saturating_mul(2)) <= left {
        return;
    }
    connections.most = connections.most.min(left * 2 / 3).max(1);
    webhooks.most = webhooks.most.min(left / 6).max(1);
    let (most, posts) = (connections.most, webhooks.most);
    if most < FEW {
        tracing::warn!(
            files,
            connections = most,
            posts,
            "few files may be open: raise the limit (ulimit -Hn)"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_fit_into_the_files() {
        for (files, expected) in
            [(1 << 20, (16_384, 4096)), (24_704, (16_384, 4096)), (1024, (597, 149)), (0, (1, 1))]
        {
            let (mut connections, mut webhooks) = (Connections::default(), Webhooks::default());
            share(files, &mut connections, &mut webhooks);
            assert_eq!((connections.most, webhooks.most), expected, "{files}");
        }
        assert!(raise() > OTHERS);
    }
}
