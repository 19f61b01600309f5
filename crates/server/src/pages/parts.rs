//! What pages are made of: glyphs, states, times, names, forms with one button, commands to copy, pages of lists.

use std::time::Duration;

use maud::{Markup, PreEscaped, Render, html};
use redrive::contract::ReplayView;
use redrive_core::alerts::Share;
use redrive_core::causes::{CauseState, Trend};
use redrive_core::pipelines::Standing;
use redrive_core::replays::ReplayState;
use redrive_core::time::Timestamp;
use redrive_core::tokens::Role;

use super::fields::carried;
use super::visitor::Visitor;
use crate::look::charts::sparkline::sparkline_until_now;
use crate::look::figures::{count, date, percent};
use crate::look::foreign::cut;
use crate::look::foreign::parts as parts_of;
pub use crate::look::foreign::{about, flag, quoted, typed};
use crate::look::tone::Tone;

/// Text of unknown origin is cut to so many characters, a mere name to fewer.
const TEXT_WIDTH: usize = 240;
const NAME_WIDTH: usize = 64;

/// A small picture beside a word.
#[derive(Clone, Copy, Debug)]
pub enum Glyph {
    Dot,
    Triangle,
    Back,
    Half,
    Bars,
    Check,
    Cross,
    Muted,
}

/// Draws a glyph.
pub fn glyph(glyph: Glyph) -> Markup {
    let shape = match glyph {
        Glyph::Dot => r#"<circle cx="6" cy="6" r="3.75" stroke="none"/>"#,
        Glyph::Triangle => r#"<path d="M6 1.5 11 10.5H1Z" stroke="none"/>"#,
        Glyph::Back => r#"<path class="line" d="M2.2 4.2A4.4 4.4 0 1 1 1.6 6.6M2 1.4V4.4H5"/>"#,
        Glyph::Half => {
            r#"<circle class="line" cx="6" cy="6" r="4.25"/><path d="M6 1.75a4.25 4.25 0 0 0 0 8.5Z" stroke="none"/>"#
        }
        Glyph::Bars => r#"<path d="M2.5 2h2.25v8H2.5ZM7.25 2H9.5v8H7.25Z" stroke="none"/>"#,
        Glyph::Check => r#"<path class="line" d="M1.75 6.5 4.75 9.5 10.25 3"/>"#,
        Glyph::Cross => r#"<path class="line" d="M2.5 2.5 9.5 9.5M9.5 2.5 2.5 9.5"/>"#,
        Glyph::Muted => r#"<circle class="line" cx="6" cy="6" r="4.25"/><path class="line" d="M3.2 8.8 8.8 3.2"/>"#,
    };
    html! {
        span.glyph aria-hidden="true" { svg width="12" height="12" viewBox="0 0 12 12" { (PreEscaped(shape)) } }
    }
}

/// A word with its glyph and tone.
pub fn state(word: &str, picture: Glyph, tone: Tone) -> Markup {
    let class = match tone {
        Tone::Plain => "plain-text",
        Tone::Good => "good-text",
        Tone::Warn => "warn-text",
        Tone::Bad => "bad-text",
        Tone::Quiet => "muted",
    };
    html! { span class={ "state " (class) } { (glyph(picture)) (word) } }
}

/// Where a cause stands.
pub fn cause_state(standing: CauseState) -> Markup {
    let picture = match standing {
        CauseState::New => Glyph::Dot,
        CauseState::Regressed => Glyph::Back,
        CauseState::Escalating => Glyph::Triangle,
        CauseState::Ongoing => Glyph::Half,
        CauseState::Resolved => Glyph::Check,
        CauseState::Muted => Glyph::Muted,
    };
    state(standing.as_str(), picture, Tone::of_state(standing.as_str()))
}

/// Where a pipeline stands.
pub fn pipeline_state(standing: Standing) -> Markup {
    let (picture, tone) = match standing {
        Standing::Failing => (Glyph::Triangle, Tone::Bad),
        Standing::Paused | Standing::Held => (Glyph::Bars, Tone::Warn),
        Standing::Unattended => (Glyph::Half, Tone::Warn),
        Standing::Alerting => (Glyph::Triangle, Tone::Warn),
        Standing::Normal => (Glyph::Check, Tone::Good),
    };
    state(standing.as_str(), picture, tone)
}

/// Where a replay is.
pub fn replay_state(replay: &ReplayView) -> Markup {
    let (standing, progress) = (replay.state, &replay.progress);
    if standing == ReplayState::Done && progress.failed > 0 && progress.recovered == 0 {
        return state("none recovered", Glyph::Cross, Tone::Bad);
    }
    let (picture, tone) = match standing {
        ReplayState::Preparing | ReplayState::Running => (Glyph::Half, Tone::Plain),
        ReplayState::Paused => (Glyph::Bars, Tone::Warn),
        ReplayState::Done => (Glyph::Check, Tone::Good),
        ReplayState::Cancelling | ReplayState::Cancelled => (Glyph::Muted, Tone::Quiet),
    };
    state(standing.as_str(), picture, tone)
}

/// Text of unknown origin. Its direction of writing does not reach what is around it.
pub fn text(text: &str) -> Markup {
    html! { bdi { (cut(text, TEXT_WIDTH)) } }
}

/// A name of unknown origin.
pub fn name(name: &str) -> Markup {
    html! { bdi { (cut(name, NAME_WIDTH)) } }
}

/// A time of day, to the second.
pub fn clock(at: Timestamp) -> String {
    at.to_string().get(11..19).unwrap_or_default().to_owned()
}

/// An instant: of today the time of day, else the date and the time. Scripts add what it is where the reader is.
pub fn instant(at: Timestamp, now: Timestamp) -> Markup {
    let shown =
        if date(at) == date(now) { clock(at) } else { at.to_string().get(..16).unwrap_or_default().replace('T', " ") };
    html! { time datetime=(at) title={ (at) " UTC" } { (shown) } }
}

/// How long ago something was.
pub fn ago(at: Timestamp, now: Timestamp) -> Markup {
    html! { time datetime=(at) title={ (at) " UTC" } { (length(at, now)) " ago" } }
}

/// How long it is until something.
pub fn ahead(at: Timestamp, now: Timestamp) -> Markup {
    html! { time datetime=(at) title={ (at) " UTC" } { @if at > now { "in " (length(now, at)) } @else { "now" } } }
}

/// The time between two instants, in its largest unit.
pub fn length(from: Timestamp, to: Timestamp) -> String {
    length_of(to.since(from))
}

/// A length of time, in its largest unit.
pub fn length_of(length: Duration) -> String {
    let secs = length.as_secs();
    match secs {
        0 => "< 1 s".to_owned(),
        1..120 => format!("{secs} s"),
        120..7_200 => format!("{} min", secs / 60),
        7_200..172_800 => format!("{} h", secs / 3_600),
        _ => format!("{} d", secs / 86_400),
    }
}

/// A number of things; nothing is muted.
pub fn number(n: impl TryInto<i64>) -> Markup {
    let n = n.try_into().unwrap_or(i64::MAX);
    html! { @if n == 0 { span.zero { "0" } } @else { (count(n)) } }
}

/// A part, its whole and the share.
pub fn share(share: Share) -> Markup {
    let [part, whole] = [share.part, share.whole].map(|n| i64::try_from(n).unwrap_or(i64::MAX));
    html! {
        @if whole == 0 { span.zero { "none ended" } }
        @else { (count(part)) " of " (count(whole)) " " span.share { (percent(share.value())) } }
    }
}

/// A share in a sentence.
pub fn share_within(share: Share) -> Markup {
    let [part, whole] = [share.part, share.whole].map(|n| i64::try_from(n).unwrap_or(i64::MAX));
    html! {
        @if whole == 0 { "none ended" }
        @else { (count(part)) " of " (count(whole)) " (" (percent(share.value())) ")" }
    }
}

/// The last day of a cause, with its peak.
pub fn trend(trend: &Trend) -> Markup {
    spark("Died in each of the last 24 hours", &trend.0, Tone::Bad)
}

/// A small chart of hours, the last of which is not over, with its peak.
pub fn spark(title: &str, hours: &[i64], tone: Tone) -> Markup {
    let peak = hours.iter().copied().max().unwrap_or(0);
    html! {
        span.spark {
            (sparkline_until_now(&format!("{title}, at most {}", count(peak)), hours, tone))
            span { (count(peak)) }
        }
    }
}

/// What somebody would type to do the same.
pub fn command(visitor: &Visitor, command: &str) -> Markup {
    html! {
        details.cli data-copies="" { summary { "Copy as CLI" } code { (typed(&visitor.command(command), "")) } }
    }
}

/// What somebody would type to do each of the things that can be done here.
pub fn commands<L: AsRef<str>>(visitor: &Visitor, lines: &[(L, String)]) -> Markup {
    html! {
        details.cli data-copies="" {
            summary { "Copy as CLI" }
            dl.keys { @for (label, line) in lines { dt { (label.as_ref()) } dd { code { (typed(&visitor.command(line), "")) } } } }
        }
    }
}

/// What somebody would type to do what a form of this page does. Where scripts run, it follows what is filled in: fields say
/// by `data-flag` how a command says what is in them.
pub fn command_of_form(visitor: &Visitor, command: &str, filled: &str) -> Markup {
    let command = visitor.command(command);
    let (begins, last) = parts_of(&command);
    html! {
        details.cli data-copies="" {
            summary { "Copy as CLI" }
            code data-line=(begins) data-last=[(!last.is_empty()).then(|| format!(" --{last}"))] { (typed(&command, filled)) }
        }
    }
}

/// What somebody would type to do to all that is ticked what each button of a form does: where scripts run, what is ticked stands in
/// place of what is meant by `…`.
pub fn commands_of_ticked<L: AsRef<str>>(visitor: &Visitor, lines: &[(L, String)], ticked: &str) -> Markup {
    html! {
        details.cli data-copies="" {
            summary { "Copy as CLI" }
            dl.keys {
                @for (label, line) in lines {
                    @let line = visitor.command(line);
                    dt { (label.as_ref()) } dd { code data-line=(line) { (line) " " (ticked) } }
                }
            }
        }
    }
}

/// A form that is a button; who may not press it is told why.
pub struct Button<'a> {
    /// Where it is sent to.
    pub action: &'a str,
    /// What it says.
    pub label: &'a str,
    /// The least role that may press it.
    pub role: Role,
    /// What it carries.
    pub fields: &'a [(&'a str, &'a str)],
    /// Its look.
    pub class: &'a str,
    /// The key that presses it.
    pub key: Option<&'a str>,
}

/// Draws a form that is a button.
pub fn button(visitor: &Visitor, button: &Button<'_>) -> Markup {
    match visitor.lacks(button.role) {
        Some(why) => {
            html! { button class=(button.class) disabled title=(why) { (button.label) } span.vh.why { (why) } }
        }
        None => html! {
            form method="post" action=(button.action) {
                (carried(visitor))
                @for (name, value) in button.fields { input type="hidden" name=(name) value=(value); }
                button class=(button.class) data-key=[button.key] { (button.label) }
            }
        },
    }
}

/// A link that looks like a button and leads to a form; who may not fill that in is told why.
pub fn link(visitor: &Visitor, role: Role, href: &str, label: &str, class: &str, key: Option<&str>) -> Markup {
    match visitor.lacks(role) {
        Some(why) => html! { button class=(class) disabled title=(why) { (label) } span.vh.why { (why) } },
        None => html! { a class={ "button " (class) } href=(href) data-key=[key] { (label) } },
    }
}

/// Where a list goes on.
pub fn further(here: &str, next: Option<&str>) -> Markup {
    html! {
        @if let Some(next) = next {
            p.table-foot { a #further href=(with_query(here, "cursor", Some(next))) { "Next page" } }
        }
    }
}

/// An address with another value of one of its parameters, or without it.
pub fn with_query(here: &str, name: &str, value: Option<&str>) -> String {
    let (path, query) = here.split_once('?').unwrap_or((here, ""));
    let kept = form_urlencoded::parse(query.as_bytes()).filter(|(known, value)| known != name && !value.is_empty());
    let mut changed = form_urlencoded::Serializer::new(String::new());
    changed.extend_pairs(kept);
    if let Some(value) = value {
        changed.append_pair(name, value);
    }
    let query = changed.finish();
    if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") }
}

/// An address without a page of its list.
pub fn without_cursor(here: &str) -> String {
    with_query(here, "cursor", None)
}

/// Views of a page, one of which is shown.
pub fn views(label: &str, views: impl IntoIterator<Item = (String, Markup, bool)>) -> Markup {
    html! {
        nav.views aria-label=(label) {
            @for (href, name, is_current) in views {
                a href=(href) aria-current=[is_current.then_some("page")] { (name) }
            }
        }
    }
}

/// The head of a column.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    label: &'static str,
    class: Option<&'static str>,
    is_seen: bool,
}

/// The head of a column of words.
pub const fn column(label: &'static str) -> Column {
    Column { label, class: None, is_seen: true }
}

/// The head of a column of numbers, which end at the same place.
pub const fn column_num(label: &'static str) -> Column {
    Column { class: Some("num"), ..column(label) }
}

/// The head of a column whose cells speak for themselves: it is there for who hears the table.
pub const fn column_unseen(label: &'static str) -> Column {
    Column { is_seen: false, ..column_num(label) }
}

/// The head of a column of boxes to tick.
pub const fn column_pick() -> Column {
    Column { class: Some("pick"), is_seen: false, ..column("Choose") }
}

impl Render for Column {
    fn render(&self) -> Markup {
        html! {
            th class=[self.class] role="columnheader" scope="col" {
                @if self.is_seen { (self.label) } @else { span.vh { (self.label) } }
            }
        }
    }
}

/// The head of a table. Roles are spelt out, because rows that are laid out otherwise lose them.
pub fn columns(columns: &[Column]) -> Markup {
    html! { thead role="rowgroup" { tr role="row" { @for column in columns { (column) } } } }
}

/// The head of a section.
pub fn section_head(id: &str, title: &str, fact: &str) -> Markup {
    html! { div.section-head { h2 id=(id) { (title) } @if !fact.is_empty() { span.fact { (fact) } } } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_changes_in_one_parameter() {
        assert_eq!(
            with_query("/letters?reason=dns&cursor=a&text=", "cursor", Some("b c")),
            "/letters?reason=dns&cursor=b+c"
        );
        assert_eq!(with_query("/letters?cursor=a", "cursor", None), "/letters");
        assert_eq!(without_cursor("/letters?cursor=a&text=x"), "/letters?text=x");
    }

    #[test]
    fn words_of_commands_are_quoted_for_a_shell() {
        assert_eq!(
            [quoted("a-b"), quoted("a b"), quoted("it's"), quoted(""), quoted("$(x)")],
            ["a-b", "'a b'", r"'it'\''s'", "''", "'$(x)'"]
        );
    }
}
