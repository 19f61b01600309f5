//! A page that asks before something costly is done: what happens, with its numbers.

use maud::{Markup, html};

use super::fields::carried;
use super::parts::command_of_form;
use super::visitor::Visitor;

/// What is asked.
pub struct Question<'a> {
    /// What is about to be done.
    pub title: &'a str,
    /// What it is done to, as items of a list: the cause, the pipeline and how many.
    pub about: Markup,
    /// What happens then.
    pub effect: Markup,
    /// Where the answer is sent to.
    pub action: &'a str,
    /// What it carries, and what is to be filled in.
    pub fields: Markup,
    /// What the button says.
    pub yes: &'a str,
    /// What somebody would type to do the same, without what is to be filled in.
    pub command: String,
    /// The rest of that, by what is filled in already.
    pub filled: String,
    /// Where who does not want it goes.
    pub back: &'a str,
}

/// The page.
pub fn page(visitor: &Visitor, question: &Question<'_>) -> Markup {
    asked(visitor, question, "primary")
}

/// The page, where nothing brings back what is taken away.
pub fn final_page(visitor: &Visitor, question: &Question<'_>) -> Markup {
    asked(visitor, question, "danger")
}

fn asked(visitor: &Visitor, question: &Question<'_>, look: &str) -> Markup {
    html! {
        div.head { h1 { (question.title) } ul.facts #about { (question.about) } }
        div.headline.warn { (question.effect) }
        form.ask method="post" action=(question.action) {
            (carried(visitor))
            (question.fields)
            p.actions {
                button class=(look) { (question.yes) }
                a.button href=(question.back) { "No, go back" }
            }
        }
        @if !question.command.is_empty() { (command_of_form(visitor, &question.command, &question.filled)) }
    }
}

/// A field of text.
pub fn entry(id: &str, label: &str, value: &str, required: bool) -> Markup {
    entry_as(id, label, value, required, None)
}

/// A field of text that a command says by a flag; an empty flag means that it is a word of its own.
pub fn entry_as(id: &str, label: &str, value: &str, required: bool, flag: Option<&str>) -> Markup {
    html! {
        p.entry {
            label for=(id) { (label) }
            input id=(id) type="text" name=(id) value=(value) required[required] data-flag=[flag];
        }
    }
}
