//! A part of a page that may fail by itself, or take too long: it then says so in its place, with a way to look again, and the rest of
//! the page stays. What a page cannot do without is read outside of parts, and fails with it.

use std::future::Future;
use std::time::Duration;

use maud::{Markup, html};

use super::parts::{Glyph, glyph, section_head};
use super::problem::Problem;
use super::visitor::Visitor;
use crate::error::ApiError;

/// How long a page waits for one of its parts.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// Makes a part, by what it is called in scripts and on the page: no other element but its heading has that id. Scripts ask for
/// `failed-NAME`: what is there for it says what went wrong, and what they showed before stays on the page, with its age. Where nothing was in it,
/// they ask for `part-NAME`: what came meanwhile is new.
pub async fn part(
    visitor: &Visitor,
    named: (&str, &str),
    made: impl Future<Output = Result<Markup, Problem>>,
) -> Markup {
    match visitor.wants(named.0) {
        true => within(PATIENCE, &visitor.here, named, made).await,
        // Nobody looks at what a script does not ask for.
        false => html! { div.part data-part=(named.0) id={ "part-" (named.0) } {} },
    }
}

/// Reads what several parts of a page need, for no longer than it waits for one of them. What somebody asked for that makes no sense, or
/// may not see, is no error of a part.
pub async fn read<T>(made: impl Future<Output = Result<T, Problem>>) -> Result<Result<T, Problem>, Problem> {
    match in_time(PATIENCE, made).await {
        Err(problem) if !problem.is_ours() => Err(problem),
        read => Ok(read),
    }
}

async fn in_time<T>(patience: Duration, made: impl Future<Output = Result<T, Problem>>) -> Result<T, Problem> {
    let late =
        |_| ApiError::unavailable("slow", format!("it takes longer than {} s", patience.as_secs_f32()), patience);
    tokio::time::timeout(patience, made).await.map_err(late)?
}

async fn within(
    patience: Duration,
    here: &str,
    (name, title): (&str, &str),
    made: impl Future<Output = Result<Markup, Problem>>,
) -> Markup {
    let problem = match in_time(patience, made).await {
        Ok(made) => return html! { div.part data-part=(name) id={ "part-" (name) } { (made) } },
        Err(problem) => problem,
    };
    html! {
        div.part.failed data-part=(name) id={ "failed-" (name) } {
            section aria-labelledby=(name) {
                (section_head(name, title, ""))
                p.part-error role="alert" {
                    (glyph(Glyph::Cross)) " "
                    span.part-why { "This part cannot be shown: " bdi { (problem.message()) } "." }
                    " "
                    a href=(here) { "Retry" }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn shown(made: impl Future<Output = Result<Markup, Problem>>) -> String {
        within(Duration::from_millis(1), "/causes/1?view=diff", ("when", "When"), made).await.into_string()
    }

    #[tokio::test]
    async fn a_part_that_goes_well_is_itself() {
        let good = shown(async { Ok(html! { p { "hours" } }) }).await;
        assert_eq!(good, "<div class=\"part\" data-part=\"when\" id=\"part-when\"><p>hours</p></div>");
    }

    #[tokio::test]
    async fn a_part_that_fails_or_takes_too_long_says_why_and_where_to_look_again() {
        let failed = shown(async { Err(ApiError::missing("<nothing>").into()) }).await;
        let slow = shown(std::future::pending()).await;
        for (page, why) in [(&failed, "&lt;nothing&gt;"), (&slow, "it takes longer than 0.001 s")] {
            assert!(page.contains("id=\"failed-when\"") && page.contains(">When</h2>"), "{page}");
            assert!(page.contains(why) && page.contains("href=\"/causes/1?view=diff\""), "{page}");
        }
    }
}
