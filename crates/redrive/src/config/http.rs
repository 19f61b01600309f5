//! The keys of how requests are sent, `[pipeline.NAME.http]`, and the handlers that send them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::handler::http::validate::Validator;
use crate::handler::http::{Authorities, Http, HttpConfig, Proxy, Transport};
use crate::handler::submit_poll::codes::Codes;
use crate::handler::submit_poll::{SubmitPoll, SubmitPollConfig};
use redrive_core::egress::Egress;
use redrive_core::proxies::ProxyPolicy;
use redrive_core::rules::Pattern;
use redrive_core::secrets::{SecretHosts, Secrets};
use serde::Deserialize;

use super::HandlerKind;
use super::outside;
use super::pipeline::PipelineConfig;
use super::request::RequestSection;
use super::secrets::expand;
use super::units::{Size, Time};

/// Signs of a page that stands in for another, from the services that put them up: regular expressions.
pub const CHALLENGES: &[&str] = &[
    r"(?i)checking your browser before accessing",
    r"(?i)cf-challenge|cf_chl_opt|challenge-platform",
    r"(?i)<title>\s*(just a moment|attention required|access denied)",
    r"(?i)captcha-delivery\.com|px-captcha|verify (that )?you are (a )?human",
];

/// `[pipeline.NAME.http]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HttpSection {
    /// How long it may take to connect.
    pub connect_timeout: Option<Time>,
    /// How long nothing may come.
    pub read_timeout: Option<Time>,
    /// The longest body that is worked on.
    pub body_max: Option<Size>,
    /// Redirects that are followed.
    pub redirects: Option<usize>,
    /// Whether cookies are kept.
    pub cookies: bool,
    /// Proxies, taken in turn.
    pub proxies: Vec<ProxySection>,
    /// How many of them a job that is blocked, or cannot connect, goes through.
    pub proxies_max: Option<usize>,
    /// Where requests may go: `public`, networks, or a list of both.
    pub allow: Option<AllowSection>,
    /// Hosts to which configured secrets go with tasks that came over the network, or were edited, besides those that the requests name.
    pub secret_hosts: Vec<String>,
    /// A PEM file with certificate authorities that are trusted beside the system's.
    pub ca: Option<PathBuf>,
    /// Requests to one target at once.
    pub per_target: Option<usize>,
    /// Requests to one target per second.
    pub per_second: Option<f64>,
    /// Signs of a page that is not the one that was asked for.
    pub challenge: Option<Vec<Pattern>>,
    /// More names whose values are secret; the same as `secret_names` of the pipeline.
    pub secret_names: Vec<String>,
}

/// Where requests may go.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, expecting = "expected \"public\", a network such as \"10.1.0.0/16\", or a list of them")]
pub enum AllowSection {
    /// One network, or `public`.
    One(String),
    /// Several.
    Several(Vec<String>),
}

/// A proxy.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProxySection {
    /// What it is called.
    pub label: String,
    /// Where it is.
    pub url: String,
}

/// `[pipeline.NAME.polling]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PollingSection {
    /// The time between two polls.
    pub every: Option<Time>,
    /// Polls after which a task is out of time.
    pub times: Option<u32>,
    /// What the provider's codes mean: the name of a table that ships, or a file.
    pub codes: Option<String>,
}

/// How many requests go to one target at once unless the pipeline says otherwise.
const PER_TARGET: usize = 4;

impl HttpSection {
    /// Returns how many requests go to one target at once.
    pub fn per_target(&self) -> usize {
        self.per_target.unwrap_or(PER_TARGET)
    }

    fn transport(&self, mut secrets: Secrets) -> Result<Transport, String> {
        let proxies = self.proxies.iter().map(|section| proxy(section, &mut secrets)).collect::<Result<_, _>>()?;
        let time = |given: Option<Time>, default| given.map_or(Duration::from_secs(default), |time| time.0);
        Ok(Transport {
            connect_timeout: time(self.connect_timeout, 10),
            read_timeout: time(self.read_timeout, 30),
            body_bytes_max: self.body_max.map_or(16 << 20, |size| usize::try_from(size.0).unwrap_or(usize::MAX)),
            redirects_max: self.redirects.unwrap_or(10),
            cookies: self.cookies,
            proxies,
            proxies_max: self.proxies_max.unwrap_or(ProxyPolicy::default().tried_max),
            egress: self.egress()?,
            authorities: self.ca.as_deref().map(authorities).transpose()?.unwrap_or_default(),
            per_target_max: Some(self.per_target()),
            per_second_max: self.per_second,
            secrets,
            secret_hosts: self.secret_hosts()?,
        })
    }
}

impl HttpSection {
    fn secret_hosts(&self) -> Result<SecretHosts, String> {
        let mut hosts = SecretHosts::default();
        let added = self.secret_hosts.iter().try_for_each(|host| hosts.add(host));
        added.map(|()| hosts).map_err(|error| format!("http.secret_hosts: {error}"))
    }

    fn egress(&self) -> Result<Egress, String> {
        let allowed = match &self.allow {
            None => return Ok(Egress::default()),
            Some(AllowSection::One(one)) => std::slice::from_ref(one),
            Some(AllowSection::Several(several)) => several.as_slice(),
        };
        Egress::only(allowed).map_err(|error| format!("http.allow: {error}"))
    }
}

fn proxy(section: &ProxySection, secrets: &mut Secrets) -> Result<Proxy, String> {
    let url = expand(&section.url, secrets)?;
    // `proxy.lan:3128` is an address too, of the scheme "proxy.lan": nothing would know where it leads.
    if !url::Url::parse(&url).is_ok_and(|url| url.has_host()) {
        return Err(format!(
            "the address of proxy {:?} is not one: write it with its scheme, as in http://proxy.lan:3128",
            section.label
        ));
    }
    Ok(Proxy { label: section.label.clone(), url })
}

/// The handler that fetches pages.
pub fn http(config: &PipelineConfig) -> Result<Http, String> {
    let mut secrets = config.secrets();
    let request = config.request.clone().unwrap_or_default().request(&mut secrets)?;
    let extractor =
        config.extract.clone().map(|rules| rules.compile().map_err(|error| error.to_string())).transpose()?;
    Http::new(HttpConfig {
        transport: config.http.transport(secrets)?,
        request,
        challenges: config.http.challenge.clone().unwrap_or_else(built_in_challenges),
        extractor,
        validator: config.schema.as_deref().map(validator).transpose()?,
    })
}

/// The handler that submits and polls.
pub fn submit_poll(config: &PipelineConfig) -> Result<SubmitPoll, String> {
    let mut secrets = config.secrets();
    let mut exchange = |name: &str, section: &Option<RequestSection>| {
        let section = section.as_ref().ok_or_else(|| format!("it has no section {name}, which submit-poll needs"))?;
        let read = section
            .read
            .clone()
            .ok_or_else(|| format!("{name} has no section read, which says what its answers mean"))?;
        Ok::<_, String>((section.request(&mut secrets)?, read.into()))
    };
    let (submit, submit_reading) = exchange("submit", &config.submit)?;
    let (poll, poll_reading) = exchange("poll", &config.poll)?;
    let polling = &config.polling;
    SubmitPoll::new(SubmitPollConfig {
        transport: config.http.transport(secrets)?,
        submit,
        submit_reading,
        poll,
        poll_reading,
        every: polling.every.map_or(Duration::from_secs(5), |time| time.0),
        polls_max: polling.times.unwrap_or(24),
        codes: polling.codes.as_deref().map(read_codes).transpose()?.unwrap_or_default(),
    })
}

fn authorities(path: &Path) -> Result<Authorities, String> {
    let shown = path.display().to_string();
    let pem = outside::file(path).map_err(|error| format!("the authorities {shown} cannot be read: {error}"))?;
    Authorities::parse(&shown, pem.as_bytes())
}

/// A table of codes: one that ships, by its name, or a file.
pub fn read_codes(name: &str) -> Result<Codes, String> {
    if let Some(codes) = Codes::built_in(name) {
        return Ok(codes);
    }
    let known = Codes::built_in_names().collect::<Vec<_>>().join(", ");
    let text = outside::file(Path::new(name))
        .map_err(|error| format!("the codes {name:?} are neither a table that ships ({known}) nor a file: {error}"))?;
    serde_json::from_str(&text).map_err(|error| format!("the codes {name}: {error}"))
}

fn validator(path: &Path) -> Result<Validator, String> {
    let shown = path.display();
    let text = outside::file(path).map_err(|error| format!("the schema {shown} cannot be read: {error}"))?;
    let schema = serde_json::from_str(&text).map_err(|error| format!("the schema {shown} is not JSON: {error}"))?;
    Validator::compile(&schema).map_err(|error| format!("the schema {shown}: {error}"))
}

fn built_in_challenges() -> Vec<Pattern> {
    CHALLENGES.iter().map(|sign| sign.parse().expect("the built-in patterns are valid")).collect()
}

/// The host that requests go to, as far as it does not depend on the task.
pub fn fixed_host(config: &PipelineConfig) -> Option<String> {
    let request = match config.handler {
        HandlerKind::SubmitPoll => config.submit.as_ref(),
        HandlerKind::Http => config.request.as_ref(),
        HandlerKind::Exec | HandlerKind::Remote => None,
    };
    // In `https://host{+path}` the host ends where the placeholder begins.
    let written = request?.url.split("{+").next()?;
    redrive_core::jobs::host_of(written).filter(|host| !host.contains(['{', '$']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_is_known_where_it_does_not_depend_on_the_task() {
        let host = |url: &str| {
            let text = format!("handler = \"http\"\nrequest = {{ url = {url:?} }}");
            fixed_host(&toml::from_str(&text).expect("a pipeline"))
        };
        assert_eq!(host("https://shop.example/{id}"), Some("shop.example".into()));
        assert_eq!(host("http://127.0.0.1:8080{+path}"), Some("127.0.0.1".into()));
        assert_eq!(host("{url}"), None);
        assert_eq!(host("https://{shop}.example/"), None);
        assert_eq!(host("https://{+host}/"), None);
    }

    #[test]
    fn a_proxy_has_a_scheme_and_a_host() {
        let made = |url: &str| proxy(&ProxySection { label: "p".into(), url: url.into() }, &mut Secrets::default());
        for url in ["http://proxy.lan:3128", "http://me:pw@127.0.0.1:8080", "socks5h://[::1]:1080"] {
            assert!(made(url).is_ok(), "{url}");
        }
        for url in ["proxy.lan:3128", "localhost:3128", "127.0.0.1:3128", "me:pw@proxy.lan:3128", "", "http:"] {
            let said = made(url).expect_err("refused");
            assert!(said.ends_with("as in http://proxy.lan:3128") && !said.contains("pw@"), "{said}");
        }
    }
}
