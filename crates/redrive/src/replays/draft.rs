//! Draft rules of fields: tried over saved pages, checked against pages that worked, shown as the change of `redrive.toml` that they are,
//! and never saved.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use redrive_core::good::GoodPage;
use redrive_core::ids::PipelineName;
use redrive_core::secrets::MASK;
use redrive_store::contract::FindGood;
use serde::{Deserialize, Serialize};

use crate::compare::Comparing;
use crate::config::Setting;
use crate::engine::Redrive;
use crate::error::Error;
use crate::handler::http::extract::{Field, Rules};

/// Good pages that a draft is checked against.
pub const CHECKED_MAX: u32 = 20;

/// A rule of each field that is drafted, by name.
pub type Draft = BTreeMap<String, String>;

/// A draft that was tried.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drafted {
    /// The rules.
    pub rules: Draft,
    /// What would change in the file.
    pub change: Vec<String>,
    /// Whether pages that worked still give the same.
    pub good: GoodCheck,
}

/// Whether pages that worked give the same record by a draft as by the rules that are configured.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GoodCheck {
    /// Those that do.
    pub same: u64,
    /// All that were read.
    pub of: u64,
    /// Fields that differ on any of the others.
    pub fields: Vec<String>,
}

/// A draft that cannot be tried.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct WrongDraft {
    /// The field.
    pub field: String,
    /// Why.
    pub why: String,
}

/// The fields of a pipeline whose rules can be drafted, with their rules: those of the record itself.
pub fn draftable(setting: &Setting, pipeline: &PipelineName) -> Vec<(String, String, String)> {
    let rules = setting.config.pipeline.get(pipeline).and_then(|known| known.extract.as_ref());
    let fields = rules.map(|rules| rules.fields.0.as_slice()).unwrap_or_default();
    let one = |(name, field): &(String, Field)| {
        let kind = field.kind.clone().unwrap_or_else(|| "text".to_owned());
        let list = if field.list { ", list" } else { "" };
        let optional = if field.required { "" } else { ", optional" };
        (name.clone(), written(field).to_owned(), format!("{kind}{list}{optional}"))
    };
    fields.iter().map(one).collect()
}

/// The configuration with a draft in place of the rules of a pipeline, and what would have to be changed in its file. Rules that are
/// the same as those of the file are no draft.
pub fn drafted(
    setting: &Setting,
    pipeline: &PipelineName,
    draft: &Draft,
) -> Result<(Setting, Draft, Vec<String>), WrongDraft> {
    let wrong = |field: &str, why: &str| WrongDraft { field: field.to_owned(), why: why.to_owned() };
    let mut changed = setting.clone();
    let first = draft.keys().next().cloned().unwrap_or_default();
    let section = changed.config.pipeline.get_mut(pipeline).and_then(|known| known.extract.as_mut());
    let rules = section.ok_or_else(|| wrong(&first, "its pipeline has no rules in this configuration"))?;
    let mut lines = vec![format!("[pipeline.{pipeline}.extract.fields]")];
    let mut kept = Draft::new();
    for (name, rule) in draft {
        let known = rules.fields.0.iter_mut().find(|(known, _)| known == name);
        let (_, field) = known.ok_or_else(|| wrong(name, "there is no such field"))?;
        let rule = rule.trim();
        if rule == written(field) {
            continue;
        }
        let before = line(name, field);
        (field.select, field.pointer) =
            if is_pointer(rule) { (None, Some(rule.to_owned())) } else { (Some(rule.to_owned()), None) };
        lines.extend([format!("- {before}"), format!("+ {}", line(name, field))]);
        kept.insert(name.clone(), rule.to_owned());
    }
    rules.clone().compile().map_err(|error| WrongDraft { field: error.field.clone(), why: error.to_string() })?;
    // What a pipeline is defined as is made of the text: the draft has the version that the file has once it is written there.
    changed.config.text = rewritten(&changed.config.text, pipeline, &kept);
    Ok((changed, kept, lines))
}

/// The text of a configuration with other rules of fields, as they are shown to be written. One that cannot be read stays as it is.
fn rewritten(text: &str, pipeline: &PipelineName, draft: &Draft) -> String {
    let Ok(mut file) = toml::from_str::<toml::Table>(text) else { return text.to_owned() };
    let within = |table: &mut toml::Table| -> Option<()> {
        let mut fields = table;
        for name in ["pipeline", pipeline.as_str(), "extract", "fields"] {
            fields = fields.get_mut(name)?.as_table_mut()?;
        }
        for (name, rule) in draft {
            let field = fields.get_mut(name)?;
            if let Some(table) = field.as_table_mut() {
                table.remove("select");
                table.remove("pointer");
            }
            match field.as_table_mut().filter(|rest| !rest.is_empty()) {
                Some(rest) => {
                    let source = if is_pointer(rule) { "pointer" } else { "select" };
                    rest.insert(source.to_owned(), rule.as_str().into());
                }
                None => *field = rule.as_str().into(),
            }
        }
        Some(())
    };
    match within(&mut file) {
        Some(()) => toml::to_string(&file).unwrap_or_else(|_| text.to_owned()),
        None => text.to_owned(),
    }
}

fn is_pointer(rule: &str) -> bool {
    rule.starts_with('/') && !rule.starts_with("//")
}

fn written(field: &Field) -> &str {
    field.select.as_deref().or(field.pointer.as_deref()).unwrap_or_default()
}

/// A field as it is written in the file.
fn line(name: &str, field: &Field) -> String {
    let text = |text: &str| format!("{text:?}");
    let rule = text(written(field));
    let mut rest = Vec::new();
    rest.extend(field.kind.as_deref().map(|kind| format!("type = {}", text(kind))));
    rest.extend(field.decimal.as_deref().map(|mark| format!("decimal = {}", text(mark))));
    if field.list {
        rest.push("list = true".to_owned());
    }
    if !field.required {
        rest.push("required = false".to_owned());
    }
    if field.fields.is_some() {
        rest.push("fields = …".to_owned());
    }
    let source = if field.pointer.is_some() { "pointer" } else { "select" };
    match rest.is_empty() {
        true => format!("{name} = {rule}"),
        false => format!("{name} = {{ {source} = {rule}, {} }}", rest.join(", ")),
    }
}

/// The rules of a definition as it was kept, if it has some. One that looks like a secret was masked there: then they are not known.
pub(crate) fn rules_of(text: &str) -> Option<Rules> {
    let mut kept: serde_json::Value = serde_json::from_str(text).ok()?;
    let rules = kept.pointer_mut("/pipeline/extract")?.take();
    if rules.to_string().contains(MASK) {
        return None;
    }
    serde_json::from_value(rules).ok()
}

impl Redrive {
    /// Reads pages that worked by the rules of a configuration and by drafted ones, and says whether they give the same.
    pub async fn check_good(
        &self,
        with: &Comparing<'_>,
        drafted: &Setting,
        pipeline: &PipelineName,
    ) -> Result<GoodCheck, Error> {
        let rules = |setting: &Setting| -> Option<Rules> { setting.config.pipeline.get(pipeline)?.extract.clone() };
        let (Some(before), Some(after)) = (rules(with.setting), rules(drafted)) else {
            return Ok(GoodCheck::default());
        };
        self.check_pages((with, pipeline), |_| Some(before.clone()), &after).await
    }

    /// Reads pages that worked by the rules of a configuration and by those that each of them worked by, as far as these are known, and
    /// says whether they give the same.
    pub async fn check_good_since(&self, with: &Comparing<'_>, pipeline: &PipelineName) -> Result<GoodCheck, Error> {
        let rules = with.setting.config.pipeline.get(pipeline).and_then(|known| known.extract.clone());
        let Some(after) = rules else { return Ok(GoodCheck::default()) };
        let seen = self.store.list_definitions(Some(pipeline.clone())).await?;
        let known: HashMap<String, Rules> = seen
            .into_iter()
            .filter_map(|seen| Some((seen.version.as_str().to_owned(), rules_of(&seen.text)?)))
            .collect();
        let before = |page: &GoodPage| known.get(page.rules.as_ref()?).cloned();
        self.check_pages((with, pipeline), before, &after).await
    }

    /// Reads pages that worked by rules of each and by other ones.
    async fn check_pages(
        &self,
        (with, pipeline): (&Comparing<'_>, &PipelineName),
        before: impl Fn(&GoodPage) -> Option<Rules>,
        after: &Rules,
    ) -> Result<GoodCheck, Error> {
        let find = FindGood { pipeline: pipeline.clone(), target: None, cause: None, limit: CHECKED_MAX };
        let (mut check, mut fields) = (GoodCheck::default(), BTreeSet::new());
        for page in self.store.good_pages(find).await? {
            let Some(before) = before(&page) else { continue };
            let Some(differ) = crate::compare::differ(with.vault, &page.payload, before, after.clone()).await else {
                continue;
            };
            check.of += 1;
            check.same += u64::from(differ.is_empty());
            fields.extend(differ);
        }
        check.fields = fields.into_iter().collect();
        Ok(check)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn setting() -> Setting {
        let text = "[pipeline.shop]\nhandler = \"http\"\n[pipeline.shop.extract.fields]\ntitle = \"h1::text\"\n\
                    price = { select = \".old::text\", type = \"number\", required = false }\n";
        let config = Config::parse(text, std::path::Path::new("redrive.toml")).expect("a configuration");
        Setting::of(config, None).expect("a setting")
    }

    fn draft(rule: &str) -> Draft {
        Draft::from([("title".to_owned(), "h1::text".to_owned()), ("price".to_owned(), rule.to_owned())])
    }

    #[test]
    fn a_draft_is_shown_as_the_change_that_it_is_and_changes_nothing() {
        let (setting, pipeline) = (setting(), "shop".parse().expect("a name"));
        let (changed, kept, lines) = drafted(&setting, &pipeline, &draft(" .new::attr(value) ")).expect("a draft");
        assert_eq!(
            lines,
            [
                "[pipeline.shop.extract.fields]",
                "- price = { select = \".old::text\", type = \"number\", required = false }",
                "+ price = { select = \".new::attr(value)\", type = \"number\", required = false }",
            ]
        );
        assert_eq!(kept.keys().collect::<Vec<_>>(), ["price"], "the other is as it is in the file");
        assert_eq!(draftable(&setting, &pipeline)[1].1, ".old::text");
        assert_eq!(draftable(&changed, &pipeline)[1].1, ".new::attr(value)");
    }

    #[test]
    fn a_draft_has_the_version_that_the_file_has_once_it_is_written_there() {
        let (setting, pipeline) = (setting(), "shop".parse().expect("a name"));
        let both = Draft::from([("title".to_owned(), "h2::text".to_owned()), ("price".to_owned(), ".new".to_owned())]);
        let (changed, ..) = drafted(&setting, &pipeline, &both).expect("a draft");
        let text = setting.config.text.replace("h1::text", "h2::text").replace(".old::text", ".new");
        let written = Config::parse(&text, std::path::Path::new("redrive.toml")).expect("a configuration");
        let written = Setting::of(written, None).expect("a setting");
        let version = |setting: &Setting| {
            let (built, _) = setting.pipeline(pipeline.clone(), &crate::config::Overrides::default()).expect("built");
            built.definition().cloned()
        };
        assert_eq!(version(&changed), version(&written));
        assert_ne!(version(&changed), version(&setting));
        assert!(version(&setting).is_some());
    }

    #[test]
    fn rules_are_read_from_a_definition_as_it_is_kept() {
        let setting = setting();
        let section = crate::config::Config::parse(&setting.config.text, std::path::Path::new("redrive.toml"));
        let own = section.expect("read").pipeline.remove(&"shop".parse().expect("a name")).expect("there").extract;
        let file: toml::Table = toml::from_str(&setting.config.text).expect("a file");
        let written = serde_json::to_value(&file["pipeline"]["shop"]).expect("JSON");
        let kept = redrive_core::definitions::define(&written, &BTreeMap::new(), &Default::default());
        let read = rules_of(&kept.text).expect("rules");
        let by_name = |rules: Rules| rules.fields.0.into_iter().collect::<BTreeMap<_, _>>();
        assert_eq!(format!("{:?}", by_name(read)), format!("{:?}", by_name(own.expect("rules"))));
        assert!(rules_of("{}").is_none() && rules_of("no").is_none());
    }

    #[test]
    fn a_draft_that_cannot_work_names_its_field() {
        let (setting, pipeline) = (setting(), "shop".parse().expect("a name"));
        let wrong = drafted(&setting, &pipeline, &draft("..x")).err().expect("refused");
        assert_eq!(wrong.field, "price");
        let unknown = Draft::from([("colour".to_owned(), "b".to_owned())]);
        assert_eq!(drafted(&setting, &pipeline, &unknown).err().expect("refused").field, "colour");
        assert!(drafted(&setting, &"other".parse().expect("a name"), &unknown).is_err());
    }
}
