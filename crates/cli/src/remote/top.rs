//! `top`: the queues of a server in the terminal, refreshed at an interval.
//!
//! The terminal is restored at the end, also after Ctrl-C and after a panic.

use std::io::{self, IsTerminal};
use std::time::{Duration, Instant, SystemTime};

use ratatui::Frame;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyModifiers};
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Cell, Paragraph, Row, Sparkline, Table};
use tourbillon_client::blocking::Client;
use tourbillon_client::{List, QueueStats, Timer};

use super::Failure;
use super::print::{age, far, length, plain};

/// The maximum number of queues whose next timers are requested.
const QUEUES_ASKED: usize = 5;
/// The maximum number of timers that are shown.
const NEXT_SHOWN: u16 = 8;
/// The number of refreshes that the chart shows.
const LOOKS: usize = 300;

/// The state that is drawn.
struct View {
    address: String,
    now: SystemTime,
    queues: Vec<QueueStats>,
    next: Vec<Timer>,
    /// Tenths of deliveries per second of all queues, one for each refresh; the last is the newest.
    rates: Vec<u64>,
    /// Why the last refresh failed.
    wrong: Option<String>,
    scroll: usize,
}

/// Shows the queues until the user quits.
pub(super) fn run(client: &Client, every: Duration) -> Result<(), Failure> {
    if !io::stdout().is_terminal() {
        let why = "`top` needs a terminal: use `tourbillon stats` or `stats --json`";
        return Err(Failure::Said(why.into()));
    }
    let mut view = View {
        address: client.address().to_owned(),
        now: client.now(),
        queues: Vec::new(),
        next: Vec::new(),
        rates: Vec::new(),
        wrong: None,
        scroll: 0,
    };
    // If the first request fails, its error is printed before the terminal changes.
    look(client, &mut view)?;
    let mut terminal = ratatui::try_init()?;
    let ended = watch(client, every, &mut terminal, &mut view);
    ratatui::try_restore()?;
    ended
}

fn watch(
    client: &Client,
    every: Duration,
    terminal: &mut ratatui::DefaultTerminal,
    view: &mut View,
) -> Result<(), Failure> {
    loop {
        terminal.draw(|frame| draw(frame, view))?;
        let until = Instant::now() + every;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if !event::poll(left)? {
                break;
            }
            if let Event::Key(key) = event::read()? {
                let control = key.modifiers.contains(KeyModifiers::CONTROL);
                match key.code {
                    KeyCode::Char('q') | KeyCode::Esc => return Ok(()),
                    KeyCode::Char('c') if control => return Ok(()),
                    KeyCode::Down | KeyCode::Char('j') => view.scroll += 1,
                    KeyCode::Up | KeyCode::Char('k') => {
                        view.scroll = view.scroll.saturating_sub(1);
                    }
                    _ => {}
                }
            }
            view.scroll = view.scroll.min(view.queues.len().saturating_sub(1));
            terminal.draw(|frame| draw(frame, view))?;
        }
        view.wrong = look(client, view).err().map(|error| error.to_string());
    }
}

/// Requests the state from the server. Keeps the previous state if the server does not answer.
fn look(client: &Client, view: &mut View) -> Result<(), tourbillon_client::Error> {
    let mut queues = client.queues()?.queues;
    let mut soon: Vec<&QueueStats> = queues.iter().filter(|queue| queue.next.is_some()).collect();
    soon.sort_by_key(|queue| queue.next);
    let mut next = Vec::new();
    let state = Some("scheduled".to_owned());
    let list = List { state, limit: Some(NEXT_SHOWN.into()), ..List::default() };
    for queue in soon.iter().take(QUEUES_ASKED) {
        next.extend(client.queue(&queue.queue).list(&list)?.timers);
    }
    next.sort_by_key(|timer| timer.next_attempt);
    next.truncate(NEXT_SHOWN.into());
    // Queues in trouble first, then busy ones.
    queues.sort_by(|one, other| {
        let trouble = |queue: &QueueStats| queue.counts.dead + queue.counts.due;
        trouble(other).cmp(&trouble(one)).then(other.per_second.total_cmp(&one.per_second))
    });
    let rate: f64 = queues.iter().map(|queue| queue.per_second).sum();
    // A chart has whole numbers: tenths of a delivery per second.
    view.rates.push((rate * 10.0).round() as u64);
    let old = view.rates.len().saturating_sub(LOOKS);
    view.rates.drain(..old);
    (view.queues, view.next, view.now) = (queues, next, client.now());
    Ok(())
}

fn draw(frame: &mut Frame<'_>, view: &View) {
    let area = frame.area();
    // On a terminal with few lines, the queues get the space of the timers that are due next.
    let lines = (area.height / 4).clamp(1, NEXT_SHOWN);
    let next = u16::try_from(view.next.len()).unwrap_or(NEXT_SHOWN).clamp(1, lines) + 2;
    let [head, rates, queues, coming, keys] = Layout::vertical([
        Constraint::Length(2),
        Constraint::Length(if area.height < 26 { 0 } else { 4 }),
        Constraint::Min(4),
        Constraint::Length(next),
        Constraint::Length(1),
    ])
    .areas(area);
    frame.render_widget(Paragraph::new(heading(view)), head);
    frame.render_widget(rate_line(view, rates.width), rates);
    frame.render_widget(table(view, area.width), queues);
    frame.render_widget(due_next(view, area.width), coming);
    let help = "q quit   ↑↓ scroll   most due and dead first";
    frame.render_widget(Paragraph::new(Line::styled(help, Modifier::DIM)), keys);
}

fn heading(view: &View) -> Vec<Line<'_>> {
    let sum = |of: fn(&QueueStats) -> u64| view.queues.iter().map(of).sum::<u64>();
    let late = view.queues.iter().map(|queue| queue.lateness.p99).max().unwrap_or_default();
    let first = Line::from(vec![
        Span::styled("tourbillon", Modifier::BOLD),
        Span::raw(format!("  {}  {}", view.address, clock(view.now))),
    ]);
    if let Some(wrong) = &view.wrong {
        return vec![first, Line::styled(format!("no answer: {}", plain(wrong)), Color::Red)];
    }
    let (due, dead) = (sum(|queue| queue.counts.due), sum(|queue| queue.counts.dead));
    let second = Line::from(vec![
        Span::raw(format!("{} scheduled  ", sum(|queue| queue.counts.scheduled))),
        Span::styled(format!("{due} due  "), alarm(due, Color::Yellow)),
        Span::raw(format!("{} delivering  ", sum(|queue| queue.counts.delivering))),
        Span::styled(format!("{dead} dead  "), alarm(dead, Color::Red)),
        Span::raw(format!("{} late p99", length(late))),
    ]);
    vec![first, second]
}

/// Deliveries per second of all queues, one column for each refresh.
fn rate_line(view: &View, width: u16) -> Sparkline<'_> {
    let seen = usize::from(width.saturating_sub(2)).min(view.rates.len());
    let last = view.rates.last().copied().unwrap_or_default();
    let title = format!(" {:.1} per sec ", last as f64 / 10.0);
    Sparkline::default()
        .data(&view.rates[view.rates.len() - seen..])
        .style(Color::Cyan)
        .block(Block::bordered().title(title))
}

/// The columns of the table that fit, the most important ones first.
fn table(view: &View, width: u16) -> Table<'_> {
    let names =
        ["queue", "scheduled", "due", "delivering", "dead", "per sec", "late p99", "oldest due"];
    let widths = [0, 9, 8, 10, 7, 8, 8, 11];
    let shown: Vec<usize> = match width {
        90.. => (0..8).collect(),
        70.. => vec![0, 1, 2, 4, 5, 6, 7],
        _ => vec![0, 1, 2, 4, 5],
    };
    let rows = view.queues.iter().skip(view.scroll).map(|queue| {
        let counts = queue.counts;
        let right = |text: String| Cell::from(Line::from(text).right_aligned());
        let warn = |count: u64, color| right(count.to_string()).style(alarm(count, color));
        let name = format!("{}{}", queue.queue, if queue.paused { " (paused)" } else { "" });
        let cells = [
            Cell::from(name),
            right(counts.scheduled.to_string()),
            warn(counts.due, Color::Yellow),
            right(counts.delivering.to_string()),
            warn(counts.dead, Color::Red),
            right(format!("{:.1}", queue.per_second)),
            right(length(queue.lateness.p99)),
            right(queue.oldest_due.map_or(String::new(), |oldest| age(view.now, oldest))),
        ];
        let cells = cells.into_iter().enumerate().filter(|(i, _)| shown.contains(i));
        Row::new(cells.map(|(_, cell)| cell).collect::<Vec<_>>())
    });
    let rows: Vec<Row<'_>> = rows.collect();
    let head = shown.iter().map(|&i| {
        let line = Line::from(names[i]);
        Cell::from(if i == 0 { line } else { line.right_aligned() })
    });
    let widths = shown.iter().map(|&i| match i {
        0 => Constraint::Min(12),
        _ => Constraint::Length(widths[i]),
    });
    let title = format!(" {} queues ", view.queues.len());
    Table::new(rows, widths.collect::<Vec<_>>())
        .header(Row::new(head.collect::<Vec<_>>()).style(Modifier::BOLD))
        .block(Block::bordered().title(title))
}

fn due_next(view: &View, width: u16) -> Paragraph<'_> {
    let wide = view.next.iter().map(|timer| timer.queue.len()).max().unwrap_or(0).min(24);
    let line = |timer: &Timer| {
        let at = if width < 80 { String::new() } else { clock(timer.next_attempt) + "  " };
        let far = far(view.now, timer.next_attempt);
        Line::from(format!("{at}{far:<10}  {:<wide$}  {}", timer.queue, plain(&timer.key)))
    };
    let lines: Vec<Line<'_>> = view.next.iter().map(line).collect();
    let lines = if lines.is_empty() { vec![Line::from("nothing is scheduled")] } else { lines };
    Paragraph::new(lines).block(Block::bordered().title(" due next "))
}

/// Highlights a count that is not 0.
fn alarm(count: u64, color: Color) -> Style {
    if count > 0 { Style::new().fg(color).add_modifier(Modifier::BOLD) } else { Style::new() }
}

/// A moment in UTC, for people: without milliseconds.
fn clock(at: SystemTime) -> String {
    humantime::format_rfc3339_seconds(at).to_string().replace('T', " ").replace('Z', " UTC")
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    /// The text of a terminal of this size, with a queue in trouble and a key with control characters.
    fn shown(width: u16, height: u16) -> String {
        let queue = r#"{"queue":"orders","counts":{"scheduled":1000000,"due":17,"delivering":5,"dead":3},
            "next":null,"oldest_due":"2026-01-01T00:00:00Z","paused":true,"per_second":12.5,
            "lateness":{"p50":"1ms","p99":"20ms","max":"1s"},
            "settings":{"retry":{},"webhook":null,"remember":"10m","dead_keep":"30d","rate":null,"concurrency":null}}"#;
        let timer = r#"{"queue":"orders","key":"\u001b[2J","generation":1,"state":"scheduled",
            "due":"2026-01-01T00:01:30Z","next_attempt":"2026-01-01T00:01:30Z","occurrence":1,"attempt":0,
            "created":"2026-01-01T00:00:00Z","remember":"10m","retry":{}}"#;
        let now = humantime::parse_rfc3339("2026-01-01T00:01:00Z").unwrap();
        let view = View {
            address: "http://localhost:7420".into(),
            now,
            queues: vec![serde_json::from_str(queue).unwrap()],
            next: vec![serde_json::from_str(timer).unwrap()],
            rates: vec![0, 100, 125],
            wrong: None,
            scroll: 0,
        };
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, &view)).unwrap();
        let buffer = terminal.backend().buffer().clone();
        let line = |y| (0..width).map(|x| buffer[(x, y)].symbol().to_owned()).collect::<String>();
        (0..height).map(line).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn every_size_shows_trouble_and_what_is_next() {
        for (width, height) in [(200, 60), (100, 30), (80, 24), (60, 20), (40, 12)] {
            let text = shown(width, height);
            for part in ["orders (paus", "1000000", "17", "dead", "due next", "in 30s"] {
                assert!(text.contains(part), "no {part:?} in {width} by {height}:\n{text}");
            }
            assert!(!text.contains('\u{1b}'), "{text}");
        }
        assert!(shown(100, 30).contains("1m│"));
        assert!(shown(80, 26).contains("12.5 per sec"));
    }

    #[test]
    fn a_terminal_of_no_size_is_no_reason_to_panic() {
        for (width, height) in [(1, 1), (5, 2), (200, 3)] {
            shown(width, height);
        }
    }
}
