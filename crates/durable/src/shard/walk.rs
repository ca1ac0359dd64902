//! Walks: requests over many rows, a page at a time: lists, cancelling by prefix, and redriving dead timers.
//!
//! A list by key, of dead timers, or of remembered ones (done or cancelled) reads the pages of one query. A list by
//! time reads several tables, so it proceeds in **stretches**, each from its cursor to the next bucket edge. In a
//! stretch at most one bucket of each level has rows. The list merges one page of each of these buckets, one page of
//! the waiting timers, and one page of those handed out. It reads them in the order in which a timer passes through
//! them, so it does not miss a timer that moves on during the list. Dead rows are ordered by the time they were given
//! up, not by their next attempt, so a list reads all of them once and keeps the earliest.
//!
//! Assigned keys are in no index. A walk over them reads every place, one page per turn, in the order of a timer's life
//! (`Shard::place_after`). A list keeps only the smallest keys read so far.
//!
//! A page of a list may be short. A walk that changes timers reads a page again if one of its rows has changed since.

use std::collections::VecDeque;
use std::ops::Bound;

use super::hand_out::MOST_BYTES;
use super::queue::Order;
use super::source::Source;
use super::{Purpose, Shard};
use crate::bucket::Bucket;
use crate::message::state;
use crate::message::{Answer, Cancelled, Cursor, LoadId, Many, Request, RequestId, State, View};
use crate::record::{Generation, Lane, Place, Record};
use crate::store::Query;
use crate::values::{Moment, QueueName};

/// Maximum number of timers that one request cancels, and that one request revives.
const MOST_CANCELLED: u64 = 100_000;
const MOST_REVIVED: u64 = 10_000;

/// A request over many rows.
#[derive(Debug)]
pub(super) struct Walk {
    id: RequestId,
    request: Request,
    after: Option<Cursor>,
    /// By time: the queries left in this stretch, its end, and the rows read so far.
    sources: VecDeque<Query>,
    end: Moment,
    rows: Vec<(Place, Record)>,
    /// By time: the first dead rows after the cursor, once they are read.
    dead: Option<Vec<(Place, Record)>>,
    /// Over every place: the current source, and the queue's `went_back` when the walk began.
    place: Option<Source>,
    went_back: u64,
    views: Vec<View>,
    done: u64,
    delivering: u64,
}

impl Walk {
    pub(super) fn id(&self) -> RequestId {
        self.id
    }
}

impl Shard {
    pub(super) fn walk(&mut self, id: RequestId, request: Request) {
        let after = match &request {
            Request::List { after, .. } => after.clone(),
            _ => None,
        };
        let (end, rows, views) = (Moment::ZERO, Vec::new(), Vec::new());
        let (sources, place, done, delivering) = (VecDeque::new(), None, 0, 0);
        let went_back = request.queue().map_or(0, |queue| self.went_back(queue));
        self.next_page_of(Walk {
            id,
            request,
            after,
            sources,
            end,
            rows,
            dead: None,
            place,
            went_back,
            views,
            done,
            delivering,
        });
    }

    fn went_back(&self, queue: &QueueName) -> u64 {
        self.queues.get(queue).map_or(0, |queue| queue.went_back)
    }

    fn next_page_of(&mut self, mut walk: Walk) {
        let Some(queue) = walk.request.queue().cloned() else { return };
        let limit = self.page_of(&walk);
        let (key, ended) = match &walk.after {
            Some(Cursor::Key(key)) => (Some(key.clone()), None),
            Some(Cursor::Ended(at, generation)) => (None, Some((*at, *generation))),
            _ => (None, None),
        };
        let query = match walk.path() {
            Path::Keys => {
                let prefix = walk.prefix().unwrap_or_default().to_owned();
                Query::Prefix { queue, prefix, after: key, limit }
            }
            Path::Dead => Query::Dead { queue, after: ended, limit },
            Path::Remembered => Query::Remembered { after: ended, limit },
            Path::Time => {
                self.begin_stretch(&mut walk);
                return self.next_source(walk);
            }
            Path::Places => {
                walk.place = self.place_after(&walk, None);
                return self.next_place(walk);
            }
        };
        self.loads.emit(query, Purpose::Walk(Box::new(walk)));
    }

    /// The rows that a walk reads at once: for a short list only some more than it returns, because the filter may
    /// leave out some of them.
    fn page_of(&self, walk: &Walk) -> usize {
        self.limits.page.min(walk.limit().saturating_mul(4).max(100))
    }

    /// Processes a page of a walk.
    pub(super) fn walked(&mut self, id: LoadId, mut walk: Walk, rows: Vec<(Place, Record)>) {
        match walk.path() {
            Path::Time => return self.read_source(id, walk, rows),
            Path::Places => return self.read_place(id, walk, rows),
            _ => {}
        }
        let mut whole = rows.len() < self.page_of(&walk);
        for (place, record) in rows {
            let stale = self.is_stale(id, &record);
            if stale && !matches!(walk.request, Request::List { .. }) {
                whole = false;
                break;
            }
            if !stale && walk.is_about(&record) && !self.has_passed(place, &record) {
                self.visit(&mut walk, place, &record);
            }
            walk.after = Some(match place {
                Place::Dead(at) | Place::Remembered(at) if walk.path() != Path::Keys => {
                    Cursor::Ended(at, record.generation())
                }
                _ => Cursor::Key(record.spec.key.clone()),
            });
            if walk.is_full() {
                return self.end_walk(walk, true);
            }
        }
        // A non-empty page of a list is an answer, even if it is short.
        match whole || !walk.views.is_empty() {
            true => self.end_walk(walk, !whole),
            false => self.next_page_of(walk),
        }
    }

    fn visit(&mut self, walk: &mut Walk, place: Place, record: &Record) {
        match &walk.request {
            Request::List { filter, .. } => {
                let view = self.view(place, record);
                if filter.fits(&view) {
                    walk.views.push(view);
                }
            }
            Request::CancelPrefix { .. } if matches!(place, Place::Remembered(_)) => {}
            Request::CancelPrefix { .. } => match self.cancel(place, record) {
                Cancelled::Delivering => walk.delivering += 1,
                _ => walk.done += 1,
            },
            _ if matches!(place, Place::Dead(_)) => {
                self.run(place, record);
                walk.done += 1;
            }
            _ => {}
        }
    }

    fn end_walk(&mut self, walk: Walk, more: bool) {
        let Walk { id, request, after, views, done, delivering, .. } = walk;
        self.outbox.answer(
            id,
            match request {
                Request::List { .. } => Answer::List(views, after.filter(|_| more)),
                _ => Answer::Many(Many { done, delivering, more }),
            },
        );
    }
}

/// Walks over every place.
impl Shard {
    /// The source to read after this one, in the order in which a timer passes through them. A timer that moves on
    /// during the walk is read in its new place. The buckets made by a split come after the bucket that is split.
    fn place_after(&self, walk: &Walk, source: Option<&Source>) -> Option<Source> {
        let queue = walk.request.queue()?.clone();
        let behind = match source {
            None => Some(Bound::Unbounded),
            Some(Source::Bucket(bucket, _)) => Some(Bound::Excluded(*bucket)),
            _ => None,
        };
        let mut buckets = behind
            .into_iter()
            .flat_map(|behind| self.window.buckets.range((behind, Bound::Unbounded)));
        if let Some((&bucket, _)) = buckets.next() {
            return Some(Source::Bucket(bucket, None));
        }
        let lists = matches!(walk.request, Request::List { .. });
        match source {
            None | Some(Source::Bucket(..)) => {
                Some(Source::Waiting(queue, Lane::Pull, Order::default()))
            }
            Some(Source::Waiting(_, Lane::Pull, _)) => {
                Some(Source::Waiting(queue, Lane::Push, Order::default()))
            }
            Some(Source::Waiting(..)) => Some(Source::Out(None)),
            Some(Source::Out(_)) => Some(Source::Dead(queue, None)),
            Some(Source::Dead(..)) if lists => Some(Source::Remembered(None)),
            _ => None,
        }
    }

    fn next_place(&mut self, walk: Walk) {
        match walk.place.as_ref().map(|place| place.query(self.limits.page)) {
            Some(query) => drop(self.loads.emit(query, Purpose::Walk(Box::new(walk)))),
            None => self.end_places(walk),
        }
    }

    fn read_place(&mut self, id: LoadId, mut walk: Walk, rows: Vec<(Place, Record)>) {
        let last = rows.last().filter(|_| rows.len() == self.limits.page).cloned();
        let mut again = false;
        for (place, record) in rows {
            if !walk.is_about(&record) || self.has_passed(place, &record) {
                continue;
            }
            match (&walk.request, self.is_stale(id, &record)) {
                (Request::List { .. }, false) => walk.rows.push((place, record)),
                (Request::List { .. }, true) => {}
                (_, true) => again = true,
                (_, false) => self.visit(&mut walk, place, &record),
            }
            if walk.is_full() {
                return self.end_walk(walk, true);
            }
        }
        self.keep_least(&mut walk);
        walk.place = match (walk.place.take(), last) {
            (Some(source), _) if again => Some(source),
            (Some(source), Some(last)) => Some(source.behind(&last)),
            (source, _) => self.place_after(&walk, source.as_ref()),
        };
        self.next_place(walk);
    }

    /// Keeps the rows with the smallest keys after the cursor: as many as the answer may hold, plus one that shows
    /// whether there are more.
    fn keep_least(&self, walk: &mut Walk) {
        let Request::List { filter, .. } = &walk.request else { return };
        let after = match &walk.after {
            Some(Cursor::Key(key)) => Some(key),
            _ => None,
        };
        walk.rows.retain(|(place, record)| {
            Some(&record.spec.key) > after && filter.fits(&self.view(*place, record))
        });
        walk.rows.sort_by(|one, other| one.1.spec.key.cmp(&other.1.spec.key));
        // A timer that moved on during the walk may be read twice; the later row counts.
        walk.rows.reverse();
        walk.rows.dedup_by(|one, other| one.1.spec.key == other.1.spec.key);
        walk.rows.reverse();
        walk.rows.truncate(walk.limit() + 1);
    }

    fn end_places(&mut self, mut walk: Walk) {
        let back = walk.request.queue().map(|queue| self.went_back(queue));
        let fits = walk.limit().min(walk.rows_that_fit());
        // A timer that moved back during the walk may have been missed in every place.
        let more = match &walk.request {
            Request::List { .. } => walk.rows.len() > fits,
            _ => back.is_some_and(|back| back != walk.went_back),
        };
        walk.rows.truncate(fits);
        walk.after = walk.rows.last().map(|row| Cursor::Key(row.1.spec.key.clone()));
        walk.views = walk.rows.drain(..).map(|(place, row)| self.view(place, &row)).collect();
        self.end_walk(walk, more);
    }
}

/// Lists by time.
impl Shard {
    /// Selects the queries of the next stretch, starting at the cursor.
    fn begin_stretch(&mut self, walk: &mut Walk) {
        let Request::List { queue, filter, .. } = &walk.request else { return };
        let (from, key) = match &walk.after {
            Some(Cursor::Time(at, key)) => (*at, key.clone()),
            _ => (filter.from, None),
        };
        let (limit, floor) = (walk.limit() + 1, self.floor(queue));
        let there = |bucket: &Bucket| self.window.buckets.contains_key(bucket);
        let next = |after: u64| self.window.after(after).map(|(bucket, _)| bucket.start());
        let mut at = from;
        if !Bucket::around(from).iter().any(there) {
            at = next(from.millis()).map_or(Moment::MAX, Moment::from_millis);
        }
        let chain: Vec<Bucket> = Bucket::around(at).into_iter().filter(there).collect();
        let ends = chain.iter().map(|bucket| bucket.end()).chain(next(at.millis() + 1)).min();
        walk.end = filter.to.min(ends.map_or(Moment::MAX, Moment::from_millis));
        walk.after = Some(Cursor::Time(from, key.clone()));
        let waiting = Lane::ALL.map(|lane| Query::Waiting {
            queue: queue.clone(),
            lane,
            from: (from, Generation(0)),
            limit,
        });
        let sorted = chain.into_iter().map(|bucket| Query::Sorted {
            bucket,
            queue: queue.clone(),
            floor,
            after: (from, key.clone()),
            limit,
        });
        let dead = Query::Dead { queue: queue.clone(), after: None, limit: self.limits.page };
        let dead = Some(dead).filter(|_| filter.state.is_none() && walk.dead.is_none());
        walk.dead.get_or_insert_default();
        walk.sources = sorted.chain(waiting).chain(dead).collect();
    }

    fn next_source(&mut self, walk: Walk) {
        match walk.sources.front().cloned() {
            Some(query) => drop(self.loads.emit(query, Purpose::Walk(Box::new(walk)))),
            None => self.end_stretch(walk),
        }
    }

    fn read_source(&mut self, id: LoadId, mut walk: Walk, rows: Vec<(Place, Record)>) {
        if let Some(Query::Dead { .. }) = walk.sources.front() {
            self.read_dead(id, &mut walk, rows);
            return self.next_source(walk);
        }
        let full = rows.len() > walk.limit();
        let last = rows.last().map(|(_, record)| (record.order(), record.generation()));
        let fresh = rows
            .into_iter()
            .filter(|(_, record)| !self.is_stale(id, record) && !self.is_discarded(record));
        walk.rows.extend(fresh);
        self.sort(&mut walk);
        // Reads on until a page is not full or ends after the last row of the answer. This is necessary because waiting
        // rows of one moment are not ordered by key, and the filter leaves out some states.
        let enough = walk.rows.get(walk.limit()).map_or(walk.end, |row| row.1.next_attempt);
        match (walk.sources.front_mut(), last.filter(|(order, _)| full && order.0 <= enough)) {
            (Some(Query::Waiting { from, .. }), Some((order, generation))) => {
                *from = (order.0, Generation(generation.0 + 1));
            }
            (Some(Query::Sorted { after, .. }), Some((order, _))) => *after = order,
            _ => drop(walk.sources.pop_front()),
        }
        self.next_source(walk);
    }

    /// Processes a page of dead rows: keeps the first ones after the cursor, whatever their stretch.
    fn read_dead(&self, id: LoadId, walk: &mut Walk, rows: Vec<(Place, Record)>) {
        let (limit, Some(Cursor::Time(from, key))) = (walk.limit(), &walk.after) else { return };
        let (begin, dead) = ((*from, key.clone()), walk.dead.get_or_insert_default());
        let last = rows.last().filter(|_| rows.len() == self.limits.page);
        let next = last.and_then(|(place, record)| match place {
            Place::Dead(at) => Some((*at, record.generation())),
            _ => None,
        });
        dead.extend(rows.into_iter().filter(|(place, record)| {
            let there = !self.is_stale(id, record) && !self.has_passed(*place, record);
            there && record.order() > begin
        }));
        dead.sort_by_key(|(_, record)| record.order());
        dead.truncate(limit + 1);
        match (walk.sources.front_mut(), next) {
            (Some(Query::Dead { after, .. }), Some(_)) => *after = next,
            _ => drop(walk.sources.pop_front()),
        }
    }

    /// Keeps the first matching rows of the stretch: as many as the answer may hold, plus one to show that more exist.
    /// If a timer moved on and was read twice, keeps its later row.
    fn sort(&self, walk: &mut Walk) {
        let Request::List { filter, .. } = &walk.request else { return };
        let Some(Cursor::Time(from, key)) = &walk.after else { return };
        let (begin, end, wall) = ((*from, key.clone()), walk.end, self.wall);
        walk.rows.retain(|(place, record)| {
            let wanted = filter.state.is_none_or(|wanted| wanted == state(*place, record, wall));
            wanted && record.order() > begin && record.next_attempt < end
        });
        walk.rows.reverse();
        walk.rows.sort_by_key(|(_, record)| record.order());
        walk.rows.dedup_by_key(|(_, record)| record.order());
        walk.rows.truncate(walk.limit() + 1);
    }

    fn end_stretch(&mut self, mut walk: Walk) {
        let Request::List { queue, filter, .. } = &walk.request else { return };
        let to = filter.to;
        let resident = self.queues.get(queue).into_iter().flat_map(|queue| queue.keys.values());
        let out = resident.map(|generation| &self.timers[generation]);
        let out = out.filter(|timer| matches!(timer.place, Place::Out(_)));
        walk.rows.extend(out.map(|timer| (timer.place, timer.record.clone())));
        walk.rows.extend(walk.dead.iter().flatten().cloned());
        self.sort(&mut walk);
        let fits = walk.limit().min(walk.rows_that_fit());
        let more = walk.rows.len() > fits;
        walk.rows.truncate(fits);
        let last = walk.rows.last().filter(|_| more).map(|row| row.1.order());
        walk.views = walk.rows.drain(..).map(|(place, row)| self.view(place, &row)).collect();
        let over = !more && (walk.end >= to || walk.end == Moment::MAX);
        let (at, key) = last.unwrap_or((walk.end, None));
        walk.after = Some(Cursor::Time(at, key));
        match over || !walk.views.is_empty() {
            true => self.end_walk(walk, !over),
            false => self.next_page_of(walk),
        }
    }
}

/// How a walk finds its rows.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Path {
    /// In the index of keys.
    Keys,
    /// In every place.
    Places,
    Dead,
    Remembered,
    /// By their next attempt.
    Time,
}

impl Walk {
    fn path(&self) -> Path {
        let indexed = self.prefix().map(|prefix| !prefix.is_empty() && !prefix.starts_with('~'));
        match (&self.request, indexed) {
            (_, Some(true)) => Path::Keys,
            (Request::Redrive { .. }, _) => Path::Dead,
            (_, Some(false)) => Path::Places,
            (Request::List { filter, .. }, None) => match filter.state {
                Some(State::Done | State::Cancelled) => Path::Remembered,
                Some(State::Dead) => Path::Dead,
                _ => Path::Time,
            },
            (other, None) => unreachable!("{other:?} is no walk"),
        }
    }

    /// The key prefix, if the request has one.
    fn prefix(&self) -> Option<&str> {
        match &self.request {
            Request::List { filter, .. } => filter.prefix.as_deref(),
            Request::CancelPrefix { prefix, .. } => Some(prefix),
            Request::Redrive { prefix, .. } => prefix.as_deref(),
            _ => None,
        }
    }

    /// Whether a row belongs to the request's queue and matches its prefix.
    fn is_about(&self, record: &Record) -> bool {
        let spec = &record.spec;
        Some(&spec.queue) == self.request.queue()
            && self.prefix().is_none_or(|prefix| spec.key.as_str().starts_with(prefix))
    }

    fn limit(&self) -> usize {
        match &self.request {
            Request::List { limit, .. } => *limit,
            _ => usize::MAX,
        }
    }

    /// How many of the rows read fit into an answer by the size of their payloads. At least one.
    fn rows_that_fit(&self) -> usize {
        let mut bytes = 0;
        let fits = self.rows.iter().take_while(|(_, row)| {
            bytes += row.spec.payload.len();
            bytes <= MOST_BYTES
        });
        fits.count().max(1)
    }

    fn is_full(&self) -> bool {
        match &self.request {
            Request::List { limit, .. } => {
                let bytes = self.views.iter().map(|view| view.payload.len()).sum::<usize>();
                self.views.len() >= *limit || bytes >= MOST_BYTES
            }
            Request::CancelPrefix { .. } => self.done + self.delivering >= MOST_CANCELLED,
            _ => self.done >= MOST_REVIVED,
        }
    }
}
