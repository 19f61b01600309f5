//! A form with a mistake comes back as it was filled in: what people write into can be mended, what it is about stays as it was.

use maud::html;

use super::confirm::entry;
use super::fields::{Fields, carried, own_path};
use super::problem::Problem;
use super::visitor::Visitor;

/// A problem with the form that it is about, as it was filled in, where that can be mended.
pub fn mended(visitor: &Visitor, fields: &Fields, problem: Problem) -> Problem {
    let path = visitor.here.split('?').next().unwrap_or_default();
    let label = |name: &str| label(path, fields.one("verb"), name);
    if !problem.is_mistake() || !fields.kept().any(|(name, _)| label(name).is_some()) {
        return problem;
    }
    let form = html! {
        form.ask method="post" action=(path) {
            (carried(visitor))
            @for (name, value) in fields.kept().filter(|(name, _)| *name != "key") {
                @if let Some(label) = label(name) { (entry(name, label, value, false)) }
                @else { input type="hidden" name=(name) value=(value); }
            }
            p.actions {
                button.primary { "Send again" }
                a.button href=(came_from(path, fields)) { "No, go back" }
            }
        }
    };
    let about = problem.field().and_then(label);
    problem.with_form(form, about.map(|label| label.split([':', ';']).next().unwrap_or(label)))
}

/// Where somebody was who sent a form: forms are sent to below what they are about.
fn came_from<'a>(path: &'a str, fields: &'a Fields) -> &'a str {
    match fields.one("back") {
        Some(back) => own_path(back),
        None => path.rsplit_once('/').map(|(above, _)| above).filter(|above| !above.is_empty()).unwrap_or("/"),
    }
}

/// What a field is called that people write into; nothing where it says what the form is about, as a filter does.
fn label(path: &str, verb: Option<&str>, name: &str) -> Option<&'static str> {
    let has_filter = path == "/letters/discard" || path.starts_with("/replays/start");
    Some(match name {
        "until" | "text" if has_filter => return None,
        "until" => "Until when: 2h (from now), a day or a time",
        "why" => "Why",
        "name" => "Name",
        "per_hour" => "Or until it kills so many tasks in an hour",
        "text" if verb == Some("split") => "Those with this text in their message",
        "text" => "What is to be said",
        "target" if verb == Some("split") => "Those of this target",
        "rate" => "Letters in a time: 5/s, 100/m or 500/h",
        "count" => "How many letters, typed to say that you mean all of them",
        "into" => "Into which: its id",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_form_is_about_is_not_written_anew() {
        let discard = |name| label("/letters/discard", None, name);
        assert_eq!((discard("until"), discard("text"), discard("id")), (None, None, None));
        assert!(discard("why").is_some() && discard("count").is_some());
        assert!(label("/pipelines/shop/pause", None, "until").is_some_and(|label| label.starts_with("Until when")));
        let split = |name| label("/causes/ab/change", Some("split"), name);
        assert!(split("target").is_some() && label("/breakers/turn", Some("hold"), "target").is_none());
    }

    #[test]
    fn the_way_back_leads_to_where_somebody_was() {
        let back = |path| came_from(path, &Fields::default()).to_owned();
        assert_eq!(back("/causes/ab/change"), "/causes/ab");
        assert_eq!(back("/pipelines/shop/pause"), "/pipelines/shop");
        assert_eq!((back("/alerts/change"), back("/login")), ("/alerts".to_owned(), "/".to_owned()));
        let said = Fields::read(b"back=%2F%3Fpipeline%3Dshop");
        assert_eq!(came_from("/breakers/turn", &said), "/?pipeline=shop");
    }
}
