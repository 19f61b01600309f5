//! The text of an address, taken apart: `postgres://USER:PASSWORD@HOST:PORT,HOST:PORT/DATABASE?name=value`, or `name=value name='value'`,
//! as libpq writes them. Nothing is printed that may be a password.

use super::parameters::{self, Given};

/// What stands for a password.
const MASK: &str = "***";

/// The parameters of an address, in their order.
pub(super) fn parse(text: &str) -> Result<Given, String> {
    match after_scheme(text) {
        Some(rest) => url(rest),
        None => words(text),
    }
}

fn after_scheme(text: &str) -> Option<&str> {
    ["postgres://", "postgresql://"].into_iter().find_map(|scheme| text.strip_prefix(scheme))
}

/// The parts of a URL: who, where, which database, and the rest.
fn parts(rest: &str) -> (Option<&str>, &str, &str, Option<&str>) {
    let (before, query) = rest.split_once('?').map_or((rest, None), |(before, query)| (before, Some(query)));
    // A password may have an unwritten @ or / in it: whatever is before the last @ belongs to it.
    let (user, place) = before.rsplit_once('@').map_or((None, before), |(user, place)| (Some(user), place));
    let (hosts, database) = place.split_once('/').unwrap_or((place, ""));
    (user, hosts, database, query)
}

fn url(rest: &str) -> Result<Given, String> {
    let (user, hosts, database, query) = parts(rest);
    let mut given = Given::default();
    if let Some(user) = user {
        let (user, password) = user.split_once(':').map_or((user, None), |(user, password)| (user, Some(password)));
        given.set_if_any("user", &decoded(user)?);
        password.map(decoded).transpose()?.into_iter().for_each(|password| given.set_if_any("password", &password));
    }
    let places = hosts.split(',').map(host_and_port).collect::<Result<Vec<_>, _>>()?;
    if places.iter().any(|(host, _)| !host.is_empty()) {
        given.set("host", &places.iter().map(|(host, _)| host.as_str()).collect::<Vec<_>>().join(","));
    }
    if places.iter().any(|(_, port)| !port.is_empty()) {
        given.set("port", &places.iter().map(|(_, port)| *port).collect::<Vec<_>>().join(","));
    }
    given.set_if_any("dbname", &decoded(database)?);
    for pair in query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').ok_or_else(|| {
            format!("a parameter is written name=value, and one has no `=`{}", parameters::meant(pair))
        })?;
        given.set(parameters::known(&decoded(name)?)?, &decoded(value)?);
    }
    Ok(given)
}

/// The host and the port of one place; `[::1]:5432` too.
fn host_and_port(text: &str) -> Result<(String, &str), String> {
    let (host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, rest)) => (host, rest.strip_prefix(':').unwrap_or(rest)),
        None => text.split_once(':').unwrap_or((text, "")),
    };
    if !port.is_empty() && port.parse::<u16>().is_err() {
        // It may be a password whose @ was forgotten.
        return Err("the port is not a number from 1 to 65535 (a : in a password is written %3A)".to_owned());
    }
    Ok((decoded(host)?, port))
}

/// `name=value name='a value'`.
fn words(text: &str) -> Result<Given, String> {
    let mut given = Given::default();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (name, after) = rest.split_once('=').ok_or("expected postgres://USER@HOST/DATABASE")?;
        let (value, after) = word(after.trim_start())?;
        given.set(parameters::known(name.trim())?, &value);
        rest = after.trim_start();
    }
    Ok(given)
}

/// A value and what follows it; a backslash takes the next character as it is.
fn word(text: &str) -> Result<(String, &str), String> {
    let quoted = text.starts_with('\'');
    let mut value = String::new();
    let mut chars = text.char_indices().skip(usize::from(quoted));
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => value.extend(chars.next().map(|(_, c)| c)),
            '\'' if quoted => return Ok((value, &text[at + 1..])),
            c if c.is_whitespace() && !quoted => return Ok((value, &text[at..])),
            c => value.push(c),
        }
    }
    if quoted { Err("a value has a ' without its end".to_owned()) } else { Ok((value, "")) }
}

/// A part of a URL without its percent signs.
pub(super) fn decoded(text: &str) -> Result<String, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        let digit = |at: usize| char::from(*after.get(at)?).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        match (first, digit(0), digit(1)) {
            (b'%', Some(high), Some(low)) => {
                bytes.push(high << 4 | low);
                rest = &after[2..];
            }
            (b'%', ..) => return Err("a % is not followed by two hexadecimal digits (% itself is written %25)".into()),
            (byte, ..) => bytes.push(*byte),
        }
    }
    String::from_utf8(bytes).map_err(|_| "it is not text in UTF-8".to_owned())
}

/// An address without what may be a password, for people. What cannot be read as one is shown as little as possible.
pub(crate) fn shown(text: &str) -> String {
    let Some(rest) = after_scheme(text) else { return "postgres://…".to_owned() };
    let (user, hosts, database, query) = parts(rest);
    let user = user.map(|user| match user.split_once(':') {
        Some((user, _)) => format!("{user}:{MASK}@"),
        None => format!("{user}@"),
    });
    let places: Vec<_> = hosts.split(',').map(shown_place).collect();
    let mut shown = format!("postgres://{}{}", user.unwrap_or_default(), places.join(","));
    if !database.is_empty() {
        shown.push('/');
        shown.push_str(database);
    }
    if let Some(query) = query {
        let pairs: Vec<_> = query.split('&').map(shown_pair).collect();
        shown.push('?');
        shown.push_str(&pairs.join("&"));
    }
    shown
}

/// A host with its port; what is no port is not shown.
fn shown_place(text: &str) -> String {
    match host_and_port(text) {
        Ok(_) => text.to_owned(),
        Err(_) => format!("{}:{MASK}", text.split(':').next().unwrap_or_default()),
    }
}

/// A parameter; the values of those that are not known are not shown: `pasword` may be one.
fn shown_pair(pair: &str) -> String {
    let Some((name, value)) = pair.split_once('=') else { return MASK.to_owned() };
    match decoded(name).as_deref().map(parameters::known) {
        Ok(Ok("direct_url")) => match decoded(value) {
            Ok(inner) => format!("{name}={}", shown(&inner)),
            Err(_) => format!("{name}={MASK}"),
        },
        Ok(Ok("password")) | Ok(Err(_)) | Err(_) => format!("{name}={MASK}"),
        Ok(Ok(_)) => pair.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> String {
        let given = parse(text).unwrap_or_else(|why| panic!("{text}: {why}"));
        given.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn an_address_is_taken_apart_as_libpq_does() {
        for (address, parts) in [
            ("postgres://", ""),
            ("postgresql://db", "host=db"),
            ("postgres://me@db:6000/jobs", "user=me host=db port=6000 dbname=jobs"),
            ("postgres://me:p%40ss%3A@db/jobs", "user=me password=p@ss: host=db dbname=jobs"),
            ("postgres://me:p@ss/w@db/jobs", "user=me password=p@ss/w host=db dbname=jobs"),
            ("postgres://[::1]:6000,b:1/x", "host=::1,b port=6000,1 dbname=x"),
            ("postgres://a,b:6000/x", "host=a,b port=,6000 dbname=x"),
            ("postgres://me@%2Frun%2Fpg/x", "user=me host=/run/pg dbname=x"),
            ("postgres:///x?host=/run/pg&schema=one", "host=/run/pg dbname=x schema=one"),
            ("host=/run/pg user=me password='a \\'b\\' c' dbname=x", "user=me password=a 'b' c host=/run/pg dbname=x"),
        ] {
            assert_eq!(of(address), parts, "{address}");
        }
    }

    #[test]
    fn what_is_wrong_is_named_without_the_password() {
        for (address, why) in [
            ("postgres://me:s3cret", "the port is not a number"),
            ("postgres://db/x?sslmod=require", "`sslmode`"),
            ("postgres://db/x?pasword=s3cret", "`password`"),
            ("postgres://db/x?s3cret", "no `=`"),
            ("postgres://db/x?sslcrl=s3cret", "does not have"),
            ("postgres://db/x?hostaddr=s3cret", "does not have"),
            ("postgres://me:%zzs3cret@db/x", "two hexadecimal digits"),
            ("host='s3cret", "without its end"),
            ("s3cret", "expected postgres://"),
        ] {
            let said = parse(address).err().unwrap_or_else(|| panic!("{address} is taken"));
            assert!(said.contains(why) && !said.contains("s3cret"), "{address}: {said}");
            assert!(!shown(address).contains("s3cret"), "{}", shown(address));
        }
    }

    #[test]
    fn passwords_are_not_shown_wherever_they_stand() {
        for (address, text) in [
            ("postgresql://me:s3cret@db:6000,e/x?schema=a", "postgres://me:***@db:6000,e/x?schema=a"),
            ("postgres://me:s3@cret/s@db/x", "postgres://me:***@db/x"),
            ("postgres://me@db/x?password=s3cret&sslmode=require", "postgres://me@db/x?password=***&sslmode=require"),
            (
                "postgres://db/x?direct_url=postgres%3A%2F%2Fme%3As3cret%40e%2Fx",
                "postgres://db/x?direct_url=postgres://me:***@e/x",
            ),
            ("host=db password=s3cret", "postgres://…"),
        ] {
            assert_eq!(shown(address), text);
        }
    }
}
