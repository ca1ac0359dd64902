//! The agent: takes due timers that have a webhook, posts them, and settles them by the response.
//!
//! If a post has not begun within its timeout, because too many posts to its host are in progress (`hosts.rs`), or
//! because the server itself was short of something (`connect.rs`), its delivery is released. This is not a failed
//! attempt. A post in progress when the server stops is released, too.

use std::error::Error as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Bytes;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, USER_AGENT};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Request};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tourbillon::tasks::{sleep, timeout};
use tourbillon_durable::{Content, Delivery, Durable, Nack, Webhook};
use tourbillon_hyper::HyperTimer;

use super::connect::{Connector, Lookups, PATIENCE_FOR_PLACES, Short, is_short};
use super::hosts::{Hosts, one_spelling};
use super::judge::{Verdict, judge};
use super::{Webhooks, target};
use crate::percent::encoded;
use crate::unsent::Unsent;

/// The time by which a lease exceeds the time limit of its post.
const MARGIN: Duration = Duration::from_secs(5);
/// How long one receive waits before the next.
const WAIT: Duration = Duration::from_secs(60);
/// How long posts in progress may continue after the server is stopped.
const PATIENCE: Duration = Duration::from_secs(3);
/// Maximum number of deliveries that one receive takes.
const BATCH: usize = 256;
/// Maximum bytes of the head of an answer.
const HEAD: usize = 16 << 10;
/// Maximum bytes of an answer that are read, so that its connection can be reused.
const ANSWER: usize = 64 << 10;

/// Posts due timers.
#[derive(Clone)]
pub(crate) struct Agent(Arc<Inner>);

struct Inner {
    durable: Durable,
    settings: Arc<Webhooks>,
    client: Client<Connector, Full<Bytes>>,
    hosts: Arc<Hosts>,
}

impl Agent {
    pub(crate) fn new(durable: Durable, settings: Arc<Webhooks>) -> Self {
        Agent::with(durable, settings, Lookups::default())
    }

    /// As [`new`](Agent::new), with another way to look names up.
    pub(super) fn with(durable: Durable, settings: Arc<Webhooks>, lookups: Lookups) -> Self {
        let mut roots = rustls::RootCertStore::empty();
        // Without any root certificate, https posts fail; their attempts report this.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("ring has the ciphers of the protocol's versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        let hosts = Arc::new(Hosts::new(settings.per_host));
        let connector = Connector::new(&settings, hosts.clone(), lookups, Arc::new(tls));
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(HyperTimer::new())
            .pool_idle_timeout(settings.idle)
            .pool_max_idle_per_host(settings.per_host)
            .http1_max_buf_size(HEAD)
            .build(connector);
        Agent(Arc::new(Inner { durable, settings, client, hosts }))
    }

    /// Posts until the server stops.
    pub(crate) async fn run(self, mut stopping: watch::Receiver<bool>) {
        let room = Arc::new(Semaphore::new(self.0.settings.most.max(1)));
        let mut posts = JoinSet::new();
        loop {
            let received = tokio::select! {
                received = self.take(&room) => received,
                _ = stopping.wait_for(|stopping| *stopping) => break,
            };
            match received {
                Ok(deliveries) => {
                    for delivery in deliveries {
                        let (agent, room) = (self.clone(), room.clone());
                        // These permits were free, and only this loop takes permits.
                        let Ok(place) = room.clone().try_acquire_owned() else { break };
                        posts.spawn(async move {
                            agent.post(Unsent::new(vec![delivery]), &room).await;
                            drop(place);
                        });
                    }
                }
                Err(tourbillon_durable::Error::Stopped) => break,
                // The store is being reopened, or too much waits to be committed: both recover by themselves.
                Err(_) => sleep(Duration::from_millis(100)).await,
            }
            while posts.try_join_next().is_some() {}
        }
        let _ = timeout(PATIENCE, async { while posts.join_next().await.is_some() {} }).await;
        // Aborting releases the posts in progress.
        posts.shutdown().await;
    }

    /// Takes at most as many deliveries as there are free places.
    async fn take(&self, room: &Semaphore) -> Result<Vec<Delivery>, tourbillon_durable::Error> {
        drop(room.acquire().await);
        let free = room.available_permits().clamp(1, BATCH);
        self.0.durable.push(free, WAIT, MARGIN).await
    }

    async fn post(&self, mut unsent: Unsent, room: &Semaphore) {
        let Some(delivery) = unsent.first() else { return };
        let Some(webhook) = delivery.webhook().cloned() else { return };
        let limit = Duration::from(webhook.timeout);
        let host = self.0.hosts.of(&webhook.url);
        let came = Instant::now();
        let place = match host.post() {
            Some(place) => Some(place),
            None => match timeout(limit, host.wait(room.available_permits())).await {
                // The lease exceeds a post's time limit by the margin, so it is extended only after half of the margin
                // has passed. Extending it after every wait would cost a commit for each post.
                Ok(Some(free)) if came.elapsed() < MARGIN / 2 => Some(free),
                Ok(Some(free)) if delivery.extend(limit + MARGIN).await.is_ok() => Some(free),
                _ => None,
            },
        };
        let release = |mut unsent: Unsent| {
            if let Some(delivery) = unsent.take() {
                drop(delivery.release_for(host.later()));
            }
        };
        let Some(place) = place else { return release(unsent) };
        let began = Instant::now();
        // The other half of the time is for the post itself.
        let sent = PATIENCE_FOR_PLACES.scope(limit / 2, self.send(delivery, &webhook));
        let (verdict, answer) = match timeout(limit, sent).await {
            Ok(Ok((verdict, answer))) => (verdict, answer),
            Ok(Err(Short)) => return release(unsent),
            Err(_) => (Verdict::Nack(None, format!("no answer within {}", webhook.timeout)), None),
        };
        host.ended(began.elapsed());
        let Some(delivery) = unsent.take() else { return };
        let (queue, key) = (delivery.queue().to_owned(), delivery.key().to_owned());
        let settle = async {
            // If the settle is lost, the delivery ends with its lease.
            match verdict {
                Verdict::Ack => drop(delivery.ack().await),
                Verdict::GiveUp(why) => {
                    tracing::info!(?queue, ?key, why, "a webhook is given up");
                    drop(delivery.give_up(why).await);
                }
                Verdict::Nack(after, why) => {
                    tracing::info!(?queue, ?key, why, "a webhook failed");
                    let nack = Nack::because(why);
                    let nack = after.map_or(nack.clone(), |after| nack.after(after));
                    drop(delivery.nack(nack).await);
                }
            }
        };
        // A connection can be reused once its answer is read. A long or slow answer is not read to the end. The next
        // post does not wait for the commit of this one.
        let free = async {
            if let Some(answer) = answer {
                let _ = timeout(limit, Limited::new(answer, ANSWER).collect()).await;
            }
            drop(place);
        };
        tokio::join!(settle, free);
    }

    /// Sends the post. Returns the verdict of its status, and the rest of the answer.
    async fn send(
        &self,
        delivery: &Delivery,
        webhook: &Webhook,
    ) -> Result<(Verdict, Option<Incoming>), Short> {
        let request = match self.request(delivery, webhook) {
            Ok(request) => request,
            Err(why) => return Ok((Verdict::Nack(None, why.into()), None)),
        };
        let response = match self.0.client.request(request).await {
            Ok(response) => response,
            Err(error) if is_short(&error) => {
                tracing::info!(
                    ?error,
                    "a webhook was not posted: the server has no free place for it"
                );
                return Err(Short);
            }
            Err(error) => {
                let cause = error.source().map(|cause| format!(": {cause}"));
                let why = format!("{error}{}", cause.unwrap_or_default());
                return Ok((Verdict::Nack(None, why), None));
            }
        };
        let (status, headers) = (response.status().as_u16(), response.headers());
        let retry_after = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok());
        let now = self.0.durable.now().into();
        let verdict = judge(status, retry_after, now, delivery.retry().longest.into());
        Ok((verdict, Some(response.into_body())))
    }

    fn request(
        &self,
        delivery: &Delivery,
        webhook: &Webhook,
    ) -> Result<Request<Full<Bytes>>, &'static str> {
        let uri = target::target(&webhook.url, &self.0.settings.allow)?;
        let uri = one_spelling(&uri).ok_or("its URL cannot be written")?;
        let (body, kind) = match (delivery.content(), delivery.payload()) {
            // An empty payload is null, as in every other answer of the server. An empty body would also have no
            // length, which servers refuse.
            (_, []) => (Bytes::from_static(b"null"), "application/json"),
            (Content::Json, payload) => (Bytes::copy_from_slice(payload), "application/json"),
            (Content::Bytes, payload) => {
                (Bytes::copy_from_slice(payload), "application/octet-stream")
            }
        };
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        let agent = concat!("tourbillon/", env!("CARGO_PKG_VERSION"));
        headers.insert(USER_AGENT, HeaderValue::from_static(agent));
        for (name, value) in &webhook.headers {
            let (name, value) = target::header(name, value.reveal())?;
            headers.insert(name, value);
        }
        for (name, value) in self.names(delivery, &body) {
            let value = HeaderValue::from_str(&value).map_err(|_| "a header cannot be written")?;
            headers.insert(HeaderName::from_static(name), value);
        }
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = axum::http::Method::POST;
        *request.uri_mut() = uri;
        *request.headers_mut() = headers;
        Ok(request)
    }

    /// The headers that identify the delivery, and sign it.
    fn names(&self, delivery: &Delivery, body: &[u8]) -> Vec<(&'static str, String)> {
        let (token, queue) = (delivery.token(), delivery.queue());
        let name = self.0.durable.name();
        let id = format!("tb_{name}_{}_{}", token.generation.0, token.occurrence);
        let timestamp = self.0.durable.now().millis() / 1000;
        let signature = self.0.settings.secrets.signature(queue, &id, timestamp, body);
        let mut names = vec![
            ("webhook-id", id),
            ("webhook-timestamp", timestamp.to_string()),
            ("tourbillon-queue", queue.to_owned()),
            ("tourbillon-key", encoded(delivery.key())),
            ("tourbillon-due", delivery.due().to_string()),
            ("tourbillon-attempt", token.attempt.to_string()),
        ];
        names.extend(signature.map(|signature| ("webhook-signature", signature)));
        names
    }
}
