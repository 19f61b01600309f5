//! Values from outside the configuration: `${env:NAME}` and `${file:PATH}`. Each is a secret from then on.

use std::path::Path;

use redrive_core::secrets::{Secrets, percent_encode};

use super::outside;

/// Puts the values into a template: braces in them are doubled, so that it takes them as they are.
pub fn expand_template(text: &str, secrets: &mut Secrets) -> Result<String, String> {
    replace(text, |value| {
        secrets.add_value(value);
        value.replace('{', "{{").replace('}', "}}")
    })
}

/// Puts the values into a text.
pub fn expand(text: &str, secrets: &mut Secrets) -> Result<String, String> {
    replace(text, |value| {
        secrets.add_value(value);
        value.to_owned()
    })
}

/// Puts the values into the address of a store. One that has a part of it is written as addresses write it; one that has the whole of
/// it is taken as it is.
pub fn expand_address(text: &str) -> Result<String, String> {
    let is_whole = text.starts_with("${") && text.find('}') == Some(text.len() - 1);
    let written = replace(text, |value| if is_whole { value.to_owned() } else { percent_encode(value) });
    written.map_err(|why| Secrets::default().mask(&why))
}

fn replace(text: &str, mut each: impl FnMut(&str) -> String) -> Result<String, String> {
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        expanded.push_str(&rest[..at]);
        let inside = &rest[at + 2..];
        let end = inside.find('}').ok_or_else(|| format!("{text:?} has a ${{ without its }}"))?;
        expanded.push_str(&each(&value_of(&inside[..end])?));
        rest = &inside[end + 1..];
    }
    expanded.push_str(rest);
    Ok(expanded)
}

fn value_of(place: &str) -> Result<String, String> {
    match place.split_once(':') {
        Some(("env", name)) => outside::variable(name)
            .ok_or_else(|| format!("the environment has no variable {name}, which ${{env:{name}}} needs")),
        Some(("file", path)) => match outside::file(Path::new(path)) {
            Ok(text) => Ok(text.trim_end_matches(['\r', '\n']).to_owned()),
            Err(error) => Err(format!("{path}, which ${{file:{path}}} needs, cannot be read: {error}")),
        },
        _ => Err(format!("${{{place}}} is not a value: expected ${{env:NAME}} or ${{file:PATH}}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_from_outside_and_are_secret() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("token");
        std::fs::write(&path, "fil3-s3cr{t}\n").expect("written");
        let mut secrets = Secrets::default();
        let text = expand_template(&format!("Bearer ${{file:{}}} {{url}}", path.display()), &mut secrets);
        assert_eq!(text.as_deref(), Ok("Bearer fil3-s3cr{{t}} {url}"));
        assert_eq!(secrets.mask("x fil3-s3cr{t} y"), "x *** y");
        std::fs::write(&path, "p@ss/w").expect("written");
        let place = path.display();
        let address = expand_address(&format!("postgres://me:${{file:{place}}}@db/x"));
        assert_eq!(address.as_deref(), Ok("postgres://me:p%40ss%2Fw@db/x"));
        std::fs::write(&path, "postgres://me:p%40ss@db/x\n").expect("written");
        assert_eq!(expand_address(&format!("${{file:{place}}}")).as_deref(), Ok("postgres://me:p%40ss@db/x"));
        for bad in ["${env:REDRIVE_NO_SUCH_VARIABLE}", "${file:/no/such/file}", "${nothing}", "${env:X"] {
            assert!(expand(bad, &mut secrets).is_err(), "{bad}");
        }
    }
}
