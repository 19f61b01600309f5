//! `redrive dead top`: dead letters by whatever they have in common, with the denominator where there is one.

use anyhow::Result;
use redrive::contract::DeadBy;
use redrive::dead::{TopLine, TopOutcome};
use redrive_core::failures::Reason;

use super::super::filter;
use crate::args::{TopArgs, TopBy};
use crate::exit::Exit;
use crate::output::bars::{Row, rows};
use crate::output::csv;
use crate::output::foreign::harmless;
use crate::output::json;
use crate::output::print::out;
use crate::output::report::figures::{count, counted, part_of, percent, share};
use crate::output::report::tone::Tone;
use crate::output::table;
use crate::setting::Setting;

pub async fn run(setting: &Setting, args: TopArgs) -> Result<Exit> {
    let redrive = setting.desk().await?;
    let filter = filter::of_dead(args.filter, redrive.now())?;
    let top = redrive.top_dead(filter, args.by.0.clone(), args.limit).await?;
    if args.json {
        for line in &top.lines {
            json::line(line)?;
        }
    } else if args.csv {
        print_csv(&top.lines)?;
    } else {
        print(&top.lines, &args.by)?;
        if top.others > 0 {
            out!("and {} with other values: --limit shows them", counted(top.others, "letter", "letters"))?;
        }
    }
    Ok(Exit::Ok)
}

fn print(lines: &[TopLine], by: &TopBy) -> Result<()> {
    if lines.is_empty() {
        out!("no dead letters")?;
        return Ok(());
    }
    let names: Vec<String> = lines
        .iter()
        .map(|line| {
            let value = line.value.as_deref().map_or_else(|| "(none)".to_owned(), harmless);
            line.reason.map_or_else(|| value.clone(), |reason| format!("{value}h  {reason}"))
        })
        .collect();
    let what = if by.0 == DeadBy::Proxy { "attempts failed" } else { "tasks died" };
    let mut table: Vec<Row<'_>> = Vec::new();
    for (line, name) in lines.iter().zip(&names) {
        let (value, remark) = (count(line.dead), remark(line, what));
        table.push(Row { name, share: line.share, tone: Tone::Bad, value, remark });
    }
    for line in rows(&table, table::line_width()) {
        out!("{line}")?;
    }
    Ok(())
}

fn remark(line: &TopLine, what: &str) -> String {
    let mut remark = percent(line.share);
    if let Some(TopOutcome { ok, failed, of }) = line.outcome {
        let always = if ok == 0 && failed > 1 { ", always" } else { "" };
        remark += &format!("   {} {what} ({}{always})", part_of(failed, of), percent(share(failed, of)));
    }
    remark
}

fn print_csv(lines: &[TopLine]) -> Result<()> {
    out!("value,reason,dead,share,ok,failed,of")?;
    for line in lines {
        let number = |of: fn(TopOutcome) -> i64| line.outcome.map_or(String::new(), |outcome| of(outcome).to_string());
        let fields = [
            line.value.as_deref().unwrap_or_default(),
            line.reason.map_or("", Reason::as_str),
            &line.dead.to_string(),
            &format!("{:.6}", line.share),
            &number(|outcome| outcome.ok),
            &number(|outcome| outcome.failed),
            &number(|outcome| outcome.of),
        ];
        out!("{}", csv::line(&fields))?;
    }
    Ok(())
}
