//! Pipelines as a server has them: also those that the configuration does not know, because their jobs are worked on elsewhere.

use std::sync::Arc;

use redrive_core::dead::foreign::Reading;
use redrive_core::failures::FailureReport;
use redrive_core::ids::PipelineName;
use redrive_core::jobs::Input;
use redrive_core::rules::Rule;

use super::{ConfigError, Overrides, Setting, read_codes, with_vault};
use crate::Pipeline;
use crate::handler::Elsewhere;
use crate::handler::submit_poll::codes::Codes;
use crate::pipeline::tracked_in;
use crate::sink::{JsonLines, ResultForm};
use crate::vault::Vault;

impl Setting {
    /// A pipeline whose jobs others lease: as the configuration has it, or, if it has none, with the default policy. Results that
    /// they bring go to the file that the configuration names.
    pub fn served_pipeline(&self, name: PipelineName, vault: Option<&Vault>) -> Result<Pipeline, ConfigError> {
        if !self.config.pipeline.contains_key(&name) {
            let handler = Elsewhere::masking(self.secrets(&name));
            return Ok(with_vault(Pipeline::with_name(name, Arc::new(handler)), vault));
        }
        // Who leases its jobs elsewhere need not have its command here.
        let (pipeline, out) = self.build(name, &Overrides::default(), false)?;
        let pipeline = with_vault(pipeline, vault);
        Ok(match self.results(out)? {
            Some(path) => {
                pipeline.sink(JsonLines::append_later(&path).without_repeats()).with_results_file(ResultForm::Whole)
            }
            None => pipeline,
        })
    }

    /// How letters of other programs are read that are for a pipeline.
    pub fn reading(&self, pipeline: PipelineName) -> Reading {
        Reading {
            named: Vec::new(),
            keep_secrets: false,
            told: FailureReport::default(),
            target: self.fixed_target(&pipeline),
            key: self.key_fields(&pipeline),
            rules: self.policy(&pipeline).rules,
            codes: self.code_rules(&pipeline),
            secrets: self.secrets(&pipeline),
            pipeline,
        }
    }

    /// What codes mean: by the table of the pipeline, or by those that ship if it has none. A table that cannot be read says nothing
    /// here; who works on the pipeline is told.
    fn code_rules(&self, pipeline: &PipelineName) -> Vec<Rule> {
        let named = self.config.pipeline.get(pipeline).and_then(|config| config.polling.codes.as_deref());
        match named {
            Some(name) => read_codes(name).map(|codes| codes.rules()).unwrap_or_default(),
            None => Codes::built_in_names().filter_map(Codes::built_in).flat_map(|codes| codes.rules()).collect(),
        }
    }

    /// The fields of an input that a pipeline keeps count of, with their values.
    pub fn tracked_in(&self, pipeline: &PipelineName, input: &Input) -> Vec<(String, String)> {
        self.config.pipeline.get(pipeline).map(|config| tracked_in(&config.track, input)).unwrap_or_default()
    }
}
