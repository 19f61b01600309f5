//! Where people open the dashboard: what is told of an alert leads there.

use std::str::FromStr;
use std::sync::Arc;

use redrive_core::alerts::page::AlertPage;
use url::Url;

/// The address of the dashboard of `redrive serve`, as people reach it. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dashboard(Arc<str>);

/// Why a text is no address of the dashboard. It does not say the text: it may be secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DashboardError {
    /// It is none of http or https.
    #[error("expected where people open the dashboard, such as https://redrive.example")]
    NoAddress,
    /// Everybody who is told would see it.
    #[error("everybody who is told sees this address: leave out its name and password, people sign in by themselves")]
    HasSecret,
    /// Its pages link to each other from the top of their host.
    #[error("the dashboard is not below a path: give it a host of its own, and write https://redrive.example")]
    HasPath,
    /// It leads to one page.
    #[error("leave out what begins with ? or #, and write https://redrive.example")]
    HasQuery,
}

impl FromStr for Dashboard {
    type Err = DashboardError;

    fn from_str(text: &str) -> Result<Self, DashboardError> {
        let url = Url::parse(text.trim()).map_err(|_| DashboardError::NoAddress)?;
        if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none_or(str::is_empty) {
            return Err(DashboardError::NoAddress);
        }
        match () {
            () if !url.username().is_empty() || url.password().is_some() => Err(DashboardError::HasSecret),
            () if url.query().is_some() || url.fragment().is_some() => Err(DashboardError::HasQuery),
            () if url.path() != "/" => Err(DashboardError::HasPath),
            () => Ok(Self(url.origin().ascii_serialization().into())),
        }
    }
}

impl Dashboard {
    /// The address of one of its pages.
    pub fn link(&self, page: &AlertPage) -> String {
        format!("{}{}", self.0, page.path())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_where_people_open_it_and_leads_to_its_pages() {
        let link = |text: &str| text.parse::<Dashboard>().map(|dashboard| dashboard.link(&AlertPage::Alerts));
        for (text, expected) in [
            ("https://redrive.example", "https://redrive.example/alerts"),
            ("https://redrive.example/", "https://redrive.example/alerts"),
            ("http://127.0.0.1:7171", "http://127.0.0.1:7171/alerts"),
            ("http://[::1]:7171/", "http://[::1]:7171/alerts"),
            ("https://Bücher.example:443", "https://xn--bcher-kva.example/alerts"),
        ] {
            assert_eq!(link(text).as_deref(), Ok(expected));
        }
        for (text, why) in [
            ("", DashboardError::NoAddress),
            ("redrive.example", DashboardError::NoAddress),
            ("redrive.example:7171", DashboardError::NoAddress),
            ("https://", DashboardError::NoAddress),
            ("javascript:alert(1)", DashboardError::NoAddress),
            ("${env:DASHBOARD}", DashboardError::NoAddress),
            ("https://ada@redrive.example", DashboardError::HasSecret),
            ("https://ada:s3cr3t@redrive.example/", DashboardError::HasSecret),
            ("https://redrive.example/team", DashboardError::HasPath),
            ("https://redrive.example/?token=s3cr3t", DashboardError::HasQuery),
            ("https://redrive.example#alerts", DashboardError::HasQuery),
        ] {
            assert_eq!(link(text), Err(why), "{text}");
        }
    }
}
