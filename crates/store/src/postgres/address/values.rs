//! Numbers, times and choices among the parameters of an address.

use std::str::FromStr;
use std::time::Duration;

use super::parameters::Given;

/// The parameters, read as what they are.
pub(super) struct Values<'a>(pub(super) &'a Given);

impl Values<'_> {
    pub(super) fn number<T: FromStr>(&self, name: &str) -> Result<Option<T>, String> {
        let number = |text: &str| text.trim().parse().map_err(|_| format!("{name} is {text:?}: expected a number"));
        self.0.get(name).map(number).transpose()
    }

    /// A time in whole seconds; none if it is 0, which stands for no limit.
    pub(super) fn seconds(&self, name: &str) -> Result<Option<Duration>, String> {
        let seconds = self.number(name)?.filter(|seconds| *seconds > 0);
        Ok(seconds.map(|seconds: u32| Duration::from_secs(seconds.into())))
    }

    pub(super) fn millis(&self, name: &str) -> Result<Option<Duration>, String> {
        let millis = self.number(name)?.filter(|millis| *millis > 0);
        Ok(millis.map(|millis: u32| Duration::from_millis(millis.into())))
    }

    /// One of several words.
    pub(super) fn choice<T: Clone>(&self, name: &str, choices: &[(&str, T)]) -> Result<Option<T>, String> {
        let Some(text) = self.0.get(name) else { return Ok(None) };
        match choices.iter().find(|(word, _)| *word == text) {
            Some((_, choice)) => Ok(Some(choice.clone())),
            None => {
                let words: Vec<_> = choices.iter().map(|(word, _)| format!("`{word}`")).collect();
                Err(format!("{name} is {text:?}: expected {}", words.join(", ")))
            }
        }
    }

    /// Parameters that change nothing must ask for nothing.
    pub(super) fn check_ignored(&self) -> Result<(), String> {
        self.choice("gssencmode", &[("disable", ()), ("prefer", ())])?;
        self.choice("client_encoding", &[("UTF8", ()), ("utf8", ()), ("UTF-8", ()), ("utf-8", ()), ("auto", ())])?;
        self.choice("sslcompression", &[("0", ())])?;
        Ok(())
    }
}
