//! Whether a value keeps to its place in the authority of an address: the part with the host, in which a task could go
//! elsewhere with all that is configured.
//!
//! A host that a template writes out stays. A value is one label of it (`https://{shop}.example.com/`), or its port, or
//! begins the path behind it (`https://shop.example{+path}`). Only where a placeholder stands for the whole host do tasks
//! choose it. Users and passwords come from the template alone, but for the placeholders that it has before its own `@`.

/// What ends an authority; browsers and their standard take a backslash for a slash.
const ENDS: [char; 4] = ['/', '?', '#', '\\'];

/// A placeholder among what surrounds it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'a> {
    /// The address so far, with all values filled in.
    pub(super) before: &'a str,
    /// The text of the template behind it, without placeholders.
    pub(super) after: &'a str,
    /// Whether what has a meaning in addresses stays as it is: `{+field}`.
    pub(super) reserved: bool,
}

impl Place<'_> {
    /// Why a value must not stand here; nothing if it may.
    pub(super) fn refusal(self, value: &str) -> Option<&'static str> {
        let (_, authority) = self.before.split_once(':')?;
        let authority = authority.trim_start_matches(['/', '\\']);
        if value.is_empty() || authority.contains(ENDS) {
            return None;
        }
        let after = self.after.split(ENDS).next().unwrap_or_default();
        let host = authority.rsplit('@').next().unwrap_or_default();
        let ends_host = after.is_empty() || after.starts_with(':');
        if after.contains('@') {
            return (self.reserved && value.contains(['/', '?', '#', '@'])).then_some("it would end the password");
        }
        match host.rsplit(']').next().unwrap_or_default().split_once(':') {
            Some((_, port)) => self.refusal_in_port(value, port, after),
            None if ends_host && host.is_empty() => {
                let brings_user = value.split(ENDS).next().is_some_and(|start| self.reserved && start.contains('@'));
                brings_user.then_some("it must not have an @")
            }
            None if after.is_empty() && self.reserved => begins_path(value),
            None if ends_host && is_complete(host) => Some("write {+…} there, and let it begin with a slash"),
            None => (!is_label(value)).then_some("within a host it must be letters, digits and hyphens, without a dot"),
        }
    }

    /// A port is one value, or it is written out.
    fn refusal_in_port(self, value: &str, port: &str, after: &str) -> Option<&'static str> {
        let is_number = value.bytes().all(|byte| byte.is_ascii_digit());
        match (port.is_empty() && after.is_empty(), self.reserved) {
            (true, _) if is_number => None,
            (_, true) => begins_path(value),
            // What is no number is encoded, and no port: the address is refused as a whole.
            (_, false) => is_number.then_some("the port is written out"),
        }
    }
}

fn begins_path(value: &str) -> Option<&'static str> {
    (!value.starts_with(['/', '?', '#'])).then_some("it must begin with a slash")
}

/// Whether a host is written out, so that anything more would make it another: `api.example.com`, but neither
/// `api.example.` nor `shop-`.
fn is_complete(host: &str) -> bool {
    host.ends_with(']') || (host.contains('.') && !host.ends_with(['.', '-']))
}

/// Whether a value is a label or a piece of one. Some signs of other scripts count as dots in a host: only letters are taken.
fn is_label(value: &str) -> bool {
    value.chars().all(|c| c.is_alphabetic() || c.is_ascii_digit() || matches!(c, '-' | '_'))
}

#[cfg(test)]
mod tests {
    use super::super::request::Template;
    use serde_json::json;

    /// Whether an address with one value is made.
    fn is_made(template: &str, value: &str) -> bool {
        let serde_json::Value::Object(input) = json!({"x": value, "empty": "", "host": "a.example"}) else { panic!() };
        Template::parse(template).expect("a template").fill_url(&input).is_ok()
    }

    #[test]
    fn a_host_that_is_written_out_stays() {
        let elsewhere =
            [".evil.example", "@evil.example", ":1@evil.example", "evil", ".evil.example/x", "/@evil.example"];
        for template in [
            "https://api.example.com{x}",
            "https://api.example.com{x}/path",
            "https://{empty}api.example.com{+x}",
            "https://me:pw@api.example.com{+x}",
            "https:/api.example.com{+x}",
            "https://{host}{+x}",
            "https://{+host}{+x}",
            "https://[::1]{+x}",
            "https://a.example:80{+x}",
        ] {
            for value in &elsewhere[..5] {
                assert!(!is_made(template, value), "{template} with {value}");
            }
            assert!(is_made(template, ""), "{template}");
            assert_eq!(is_made(template, "/x?y"), template.ends_with("{+x}"), "{template}");
        }
        assert!(is_made("https://api.example.com{+x}", elsewhere[5]), "behind the slash it is the path's");
        assert!(is_made("https://api.example.com/{+x}", "@evil.example") && is_made("https://h?q={x}", "@.:"));
        assert!(!is_made("https://a.example:80{x}", "80") && !is_made("https://a.example:80{+x}", "80"));
    }

    #[test]
    fn a_label_is_one_label() {
        for template in [
            "https://{x}.example.com/",
            "https://shop-{x}.example.com/",
            "https://{+x}.example.com/",
            "https://api.{x}/",
            "https://api{x}:8080/",
            "https://{x}-{host}.example.com/".replace("{host}", "{empty}").as_str(),
        ] {
            for value in ["7", "zażółć", "a-b_c", ""] {
                assert!(is_made(template, value), "{template} with {value}");
            }
            for value in ["evil.example", "evil.example/", "a。b", "a．b", "@evil", "a:b", "x/", "⒈", "%2e"] {
                assert!(!is_made(template, value), "{template} with {value}");
            }
        }
    }

    #[test]
    fn tasks_choose_what_a_placeholder_stands_for() {
        for (template, value) in [
            ("https://{x}/", "b.example"),
            ("https://{+x}/", "b.example:80"),
            ("https://{+x}", "b.example/path@x"),
            ("https://{x}:8080/", "b.example"),
            ("https://a.example:{x}/", "8080"),
            ("https://a.example:{+x}/", "8080"),
            ("https://me:{x}@a.example/", "p@/ss"),
            ("https://me:{+x}@a.example/", "p+ss"),
            ("{+x}/path", "https://b.example"),
        ] {
            assert!(is_made(template, value), "{template} with {value}");
        }
        for (template, value) in [
            ("https://{+x}/", "a.example@evil.example"),
            ("https://me:{+x}@a.example/", "/x"),
            ("https://me:{+x}@a.example/", "x@evil.example/"),
            ("https://a.example:{+x}/", "80@evil.example"),
        ] {
            assert!(!is_made(template, value), "{template} with {value}");
        }
    }
}
