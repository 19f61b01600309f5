//! The request behind a dead letter, as its pipeline would send it, without secrets.

use std::collections::HashMap;

use redrive::Pipeline;
use redrive::config::{Overrides, Setting};
use redrive::export::HttpRequest;
use redrive_core::dead::DeadLetter;
use redrive_core::ids::PipelineName;
use redrive_core::secrets::Secrets;

use crate::output::print::say;

/// Makes requests for letters of any pipeline.
pub struct Requests<'a> {
    setting: &'a Setting,
    pipelines: HashMap<PipelineName, Option<Pipeline>>,
}

/// Makes requests for letters.
pub fn requests(setting: &Setting) -> Requests<'_> {
    Requests { setting, pipelines: HashMap::new() }
}

impl Requests<'_> {
    /// The request that a letter is about: its pipeline's, or else a plain one of its input's address.
    pub fn of(&mut self, letter: &DeadLetter) -> Option<HttpRequest> {
        let setting = self.setting;
        let pipeline = self.pipelines.entry(letter.pipeline.clone()).or_insert_with(|| {
            let built = setting.pipeline(letter.pipeline.clone(), &Overrides::default());
            // A pipeline that is not, or no longer, in the configuration leaves the plain request.
            if let (Err(error), true) = (&built, setting.config.pipeline.contains_key(&letter.pipeline)) {
                say!("the request is a guess, because its pipeline cannot be set up: {error}");
            }
            built.ok().map(|(pipeline, _)| pipeline)
        });
        pipeline.as_ref().and_then(|pipeline| pipeline.request(&letter.input)).or_else(|| plain(letter))
    }
}

fn plain(letter: &DeadLetter) -> Option<HttpRequest> {
    let url = letter.input.get("url")?.as_str().filter(|url| url.contains("://"))?;
    Some(HttpRequest { method: "GET".into(), url: Secrets::default().mask(url), ..HttpRequest::default() })
}
