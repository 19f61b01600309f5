//! Last failures of jobs that wait for another attempt while a target is on hold, and the command that lets them go on.

use std::io;

use redrive_core::hidden::is_hidden;
use redrive_core::ids::PipelineName;
use redrive_core::retrying::RetryingView;

use super::foreign::{cut, quoted, width_of};
use super::paint::{WAITING, paint};
use super::print::{out, say};
use super::table::{line_width, line_width_of_stderr};
use super::typed::REDRIVE;

/// Causes of a pipeline that are told.
const CAUSES_MAX: usize = 3;

const LABEL: &str = "retrying:";

/// Prints what is known of several pipelines.
pub fn print(views: &[RetryingView]) -> io::Result<()> {
    if !views.is_empty() {
        out!("")?;
    }
    for view in views {
        let name = format!("{} ", view.pipeline);
        for line in causes(view, CAUSES_MAX, line_width().saturating_sub(width_of(&name))) {
            out!("{name}{} {line}", paint(WAITING, LABEL))?;
        }
        for command in commands(view) {
            out!("{}", indented(&command, line_width()))?;
        }
    }
    Ok(())
}

/// Says what is known of the pipeline of a run.
pub fn tell(view: &RetryingView) {
    let lines = causes(view, CAUSES_MAX, line_width_of_stderr());
    lines.iter().for_each(|line| say!("{} {line}", paint(WAITING, LABEL)));
    commands(view).iter().for_each(|command| say!("{}", indented(command, line_width_of_stderr())));
}

/// The same in two lines of at most `width` columns, for what is drawn again and again. A command is never cut.
pub fn short(view: &RetryingView, width: usize) -> Vec<String> {
    let mut lines: Vec<_> = causes(view, 1, width).iter().take(1).map(|line| format!("{LABEL} {line}")).collect();
    let list = || format!("{REDRIVE} breaker list --pipeline {}", view.pipeline);
    let command = view.targets.first().map_or_else(list, |target| close(target, Some(&view.pipeline)));
    let indented = |command: String| format!("    {command}");
    let fits = |line: &String| width_of(line) <= width;
    lines.extend([command, list()].map(indented).into_iter().find(fits));
    lines
}

/// Lines of causes that fit beside the label.
fn causes(view: &RetryingView, max: usize, width: usize) -> Vec<String> {
    view.lines(max).iter().map(|line| cut(line, width.saturating_sub(LABEL.len() + 1))).collect()
}

/// The commands that close the breakers of targets on hold, and where the others are listed.
fn commands(view: &RetryingView) -> Vec<String> {
    let close = |target: &String| format!("ask again now: {}", close(target, Some(&view.pipeline)));
    let mut commands: Vec<_> = view.targets.iter().map(close).collect();
    if view.more_targets > 0 {
        commands.push(format!("and {} more: {REDRIVE} breaker list --pipeline {}", view.more_targets, view.pipeline));
    }
    commands
}

/// A command below what it is about. Where it does not fit, it goes on in a second line as a shell takes it.
fn indented(command: &str, width: usize) -> String {
    match command.split_once(" --pipeline ") {
        Some((begin, rest)) if width_of(command) + 4 > width => format!("    {begin} \\\n        --pipeline {rest}"),
        _ => format!("    {command}"),
    }
}

/// The command that closes the breaker of a target. A target that cannot be typed has to be looked up.
pub fn close(target: &str, pipeline: Option<&PipelineName>) -> String {
    let of = pipeline.map(|name| format!(" --pipeline {name}")).unwrap_or_default();
    if target.contains(is_hidden) {
        return format!("{REDRIVE} breaker list{of}");
    }
    match target.starts_with('-') {
        true => format!("{REDRIVE} breaker close{of} -- {}", quoted(target)),
        false => format!("{REDRIVE} breaker close {}{of}", quoted(target)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(targets: &[&str], more_targets: u64) -> RetryingView {
        let targets = targets.iter().map(|target| (*target).to_owned()).collect();
        let pipeline = "shop".parse().expect("a name");
        let nothing = RetryingView::new(pipeline, Vec::new(), Vec::new(), 12);
        RetryingView { targets, more_targets, ..nothing }
    }

    #[test]
    fn commands_can_be_typed_as_they_are_printed() {
        let table = [
            ("shop.example", "redrive breaker close shop.example --pipeline shop"),
            ("the shop's", r"redrive breaker close 'the shop'\''s' --pipeline shop"),
            ("--all", "redrive breaker close --pipeline shop -- --all"),
            ("shop\u{202e}", "redrive breaker list --pipeline shop"),
        ];
        for (target, command) in table {
            assert_eq!(close(target, "shop".parse().ok().as_ref()), command);
        }
    }

    #[test]
    fn a_command_that_does_not_fit_goes_on_in_a_second_line() {
        let command = "ask again now: redrive breaker close shop.example --pipeline shop";
        assert_eq!(indented(command, 80), format!("    {command}"));
        let two = "    ask again now: redrive breaker close shop.example \\\n        --pipeline shop";
        assert_eq!(indented(command, 60), two);
    }

    #[test]
    fn two_short_lines_fit_and_no_command_is_cut() {
        let long = "a-very-long-name.of-a-shop.that-goes-on.example";
        for width in 0..120 {
            for line in short(&view(&[long], 0), width) {
                assert!(width_of(&line) <= width.max(LABEL.len() + 1), "{width}: {line:?}");
                let command = line.trim();
                let whole = [close(long, "shop".parse().ok().as_ref()), "redrive breaker list --pipeline shop".into()];
                assert!(command.starts_with(LABEL) || whole.iter().any(|whole| whole == command), "{line:?}");
            }
        }
    }

    #[test]
    fn many_targets_are_a_few_lines() {
        let told = commands(&view(&["a", "b", "c"], 197));
        assert_eq!((told.len(), told[3].as_str()), (4, "and 197 more: redrive breaker list --pipeline shop"));
    }
}
