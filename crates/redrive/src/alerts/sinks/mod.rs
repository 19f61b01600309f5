//! Sinks: who is told of alerts. They come from the local file; what is secret about them leaves this module only to where it
//! belongs.
//!
//! - `webhook`: an address that is sent JSON, in the shape of `shapes`
//! - `command`: a command that reads text; `words`: what is secret in its arguments

mod command;
mod shapes;
mod webhook;
mod words;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use redrive_core::alerts::Notice;
use redrive_core::alerts::text::plain;
use redrive_core::secrets::Secrets;

use self::command::CommandSink;
use self::shapes::Shape;
use self::webhook::Webhook;
use super::dashboard::Dashboard;

/// How long a sink may take unless something else is said.
pub const TIMEOUT: Duration = Duration::from_secs(10);

/// Where events of PagerDuty go.
pub const PAGERDUTY: &str = "https://events.pagerduty.com/v2/enqueue";

/// The most that is kept of what went wrong, in characters.
const ERROR_MAX: usize = 300;

/// Why a sink could not be told something.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refusal {
    /// What went wrong, on one line, with nothing secret in it.
    pub why: String,
    /// How long it asks to be left alone.
    pub retry_after: Option<Duration>,
}

impl From<String> for Refusal {
    fn from(why: String) -> Self {
        Self { why, retry_after: None }
    }
}

/// Who is told of alerts. Cheap to clone.
#[derive(Clone)]
pub struct Sink {
    inner: Arc<Inner>,
    /// Where what it is told leads.
    dashboard: Option<Dashboard>,
}

struct Inner {
    name: String,
    kind: &'static str,
    timeout: Duration,
    /// What must not get out of what is said about it.
    secrets: Secrets,
    way: Way,
}

/// How a sink is told.
enum Way {
    Webhook(Webhook),
    Command(CommandSink),
    Log,
    /// It cannot be, as it is defined.
    Broken(String),
}

/// What a sink is made of. Values are as they are to be used: nothing in them is replaced any more.
#[derive(Clone)]
pub enum SinkDefinition {
    /// JSON to an address.
    Webhook {
        /// The address.
        url: String,
        /// Headers to send.
        headers: Vec<(String, String)>,
    },
    /// An incoming webhook of Slack.
    Slack {
        /// The address.
        url: String,
        /// Headers to send.
        headers: Vec<(String, String)>,
    },
    /// PagerDuty's Events API, version 2.
    PagerDuty {
        /// The address.
        url: String,
        /// The key of the service.
        routing_key: String,
        /// Headers to send.
        headers: Vec<(String, String)>,
    },
    /// A command that reads the text.
    Command {
        /// The command and its arguments.
        command: Vec<String>,
        /// Where it runs.
        folder: Option<PathBuf>,
    },
    /// The log.
    Log,
}

impl SinkDefinition {
    const fn kind(&self) -> &'static str {
        match self {
            Self::Webhook { .. } => "webhook",
            Self::Slack { .. } => "slack",
            Self::PagerDuty { .. } => "pagerduty",
            Self::Command { .. } => "command",
            Self::Log => "log",
        }
    }
}

impl Sink {
    /// A sink. One that cannot be made as it is defined is one that fails, and says why: jobs go on meanwhile.
    pub fn new(name: &str, definition: SinkDefinition, timeout: Duration) -> Self {
        Self::hiding(name, definition, timeout, Secrets::default())
    }

    /// The same, with values that must not get out of what is said about it, besides those that can be told by where they stand.
    pub fn hiding(name: &str, definition: SinkDefinition, timeout: Duration, mut secrets: Secrets) -> Self {
        let kind = definition.kind();
        let web = |url: &str, headers: &[(String, String)], shape, secrets: &mut Secrets| {
            Webhook::new(url, headers, shape, secrets).map(Way::Webhook)
        };
        let way = match definition {
            SinkDefinition::Webhook { url, headers } => web(&url, &headers, Shape::Generic, &mut secrets),
            SinkDefinition::Slack { url, headers } => web(&url, &headers, Shape::Slack, &mut secrets),
            SinkDefinition::PagerDuty { url, routing_key, headers } => {
                secrets.add_value(&routing_key);
                web(&url, &headers, Shape::PagerDuty { routing_key }, &mut secrets)
            }
            SinkDefinition::Command { command, folder } => {
                words::hide(&command, &mut secrets);
                CommandSink::new(&command, folder).map(Way::Command)
            }
            SinkDefinition::Log => Ok(Way::Log),
        };
        let way = way.unwrap_or_else(|why| Way::Broken(secrets.mask(&why)));
        Self { inner: Arc::new(Inner { name: name.to_owned(), kind, timeout, secrets, way }), dashboard: None }
    }

    /// A sink that cannot be told anything.
    pub fn unusable(name: &str, kind: &'static str, why: String) -> Self {
        let (timeout, secrets, way) = (TIMEOUT, Secrets::default(), Way::Broken(why));
        Self { inner: Arc::new(Inner { name: name.to_owned(), kind, timeout, secrets, way }), dashboard: None }
    }

    /// The same, told with each alert where its page of the dashboard is.
    pub fn linking_to(self, dashboard: Option<Dashboard>) -> Self {
        Self { dashboard, ..self }
    }

    /// What the local file calls it.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// What it is.
    pub fn kind(&self) -> &'static str {
        self.inner.kind
    }

    /// How long it may take.
    pub fn timeout(&self) -> Duration {
        self.inner.timeout
    }

    /// Why it cannot be told anything, if that is known before it is tried.
    pub fn broken(&self) -> Option<&str> {
        match &self.inner.way {
            Way::Broken(why) => Some(why),
            _ => None,
        }
    }

    /// Tells it something.
    pub async fn send(&self, notice: &Notice) -> Result<(), Refusal> {
        // It is made when it is told and not when it is posted: the file that knows the sink knows where its readers look.
        let link = self.dashboard.as_ref().map(|dashboard| dashboard.link(&notice.page()));
        let link = link.as_deref();
        let sending = async {
            match &self.inner.way {
                Way::Webhook(webhook) => webhook.send(notice, link, &self.inner.secrets).await,
                Way::Command(command) => Ok(command.send(notice, link).await?),
                Way::Log => {
                    log(notice, link);
                    Ok(())
                }
                Way::Broken(why) => Err(why.clone().into()),
            }
        };
        let sent = match tokio::time::timeout(self.inner.timeout, sending).await {
            Ok(sent) => sent,
            Err(_) => Err(format!("it took longer than {:?}", self.inner.timeout).into()),
        };
        sent.map_err(|refusal| Refusal { why: plain(&self.inner.secrets.mask(&refusal.why), ERROR_MAX), ..refusal })
    }
}

impl fmt::Debug for Sink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sink({} {})", self.inner.kind, self.inner.name)
    }
}

/// A line in the log that is seen also by who did not ask for more.
fn log(notice: &Notice, link: Option<&str>) {
    tracing::warn!(alert = notice.key.as_str(), look = notice.look, url = link, "{}", notice.title());
}
