//! The head of an HTTP message, rebuilt from what was kept of it: first line, headers, blank line.
//!
//! It must be true of the body that follows. A kept body has no transfer coding and is no longer packed, so headers
//! that say otherwise go on under another name.

use url::{Position, Url};

use super::request::{HttpRequest, header, one_line, token};

const RENAMED: &str = "X-Archive-Orig-";

/// The head of a response. The reason phrase and the version of HTTP are not kept.
pub(super) fn of_response(status: u16, headers: &[(String, String)], body_bytes: u64) -> String {
    let lines = lines(headers, &["Content-Encoding", "Transfer-Encoding"], body_bytes);
    format!("HTTP/1.1 {status} \r\n{lines}\r\n")
}

/// The head of a request, with what every client adds: where it goes and how long it is.
pub(super) fn of_request(request: &HttpRequest, url: &Url) -> String {
    let body_bytes = request.body.as_ref().map_or(0, Vec::len) as u64;
    let mut head =
        format!("{} {} HTTP/1.1\r\n", token(&request.method), &url[Position::BeforePath..Position::AfterQuery]);
    if header(&request.headers, "Host").is_none() {
        head.push_str(&line("Host", &url[Position::BeforeHost..Position::AfterPort]));
    }
    head.push_str(&lines(&request.headers, &["Transfer-Encoding"], body_bytes));
    if request.body.is_some() && header(&request.headers, "Content-Length").is_none() {
        head.push_str(&line("Content-Length", &body_bytes.to_string()));
    }
    head.push_str("\r\n");
    head
}

fn lines(headers: &[(String, String)], untrue: &[&str], body_bytes: u64) -> String {
    let length = body_bytes.to_string();
    let lines = headers.iter().map(|(name, value)| {
        let renamed = || line(&format!("{RENAMED}{name}"), value);
        if untrue.iter().any(|untrue| name.eq_ignore_ascii_case(untrue)) {
            renamed()
        } else if name.eq_ignore_ascii_case("Content-Length") && *value != length {
            renamed() + &line(name, &length)
        } else {
            line(name, value)
        }
    });
    lines.collect()
}

fn line(name: &str, value: &str) -> String {
    format!("{}: {}\r\n", token(name), one_line(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::request::web_address;

    fn headers(headers: &[(&str, &str)]) -> Vec<(String, String)> {
        headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn headers_that_are_no_longer_true_are_renamed() {
        let headers = headers(&[("content-encoding", "br"), ("X-A", "ü"), ("Content-Length", "9"), ("x-a", "2")]);
        let head = of_response(200, &headers, 30);
        assert_eq!(
            head,
            "HTTP/1.1 200 \r\nX-Archive-Orig-content-encoding: br\r\nX-A: ü\r\nX-Archive-Orig-Content-Length: 9\r\n\
             Content-Length: 30\r\nx-a: 2\r\n\r\n"
        );
        assert!(of_response(200, &headers, 9).contains("\r\nContent-Length: 9\r\nx-a"), "what is true stays");
    }

    #[test]
    fn no_header_becomes_two() {
        let head = of_response(404, &headers(&[("a\r\n\r\nb", "c\r\n\r\nd\ne")]), 0);
        assert_eq!(head, "HTTP/1.1 404 \r\na____b: c    d e\r\n\r\n");
    }

    #[test]
    fn a_request_says_where_it_goes() {
        let mut request = HttpRequest {
            method: "POST".into(),
            url: "https://***@h.example:8443?q=ü x#f".into(),
            headers: headers(&[("Accept", "*/*")]),
            body: Some(b"abc".to_vec()),
        };
        let url = web_address(&request.url).expect("an address");
        let head = "POST /?q=%C3%BC%20x HTTP/1.1\r\nHost: h.example:8443\r\nAccept: */*\r\nContent-Length: 3\r\n\r\n";
        assert_eq!(of_request(&request, &url), head);
        request.headers = headers(&[("host", "other"), ("content-length", "7")]);
        let head = "POST /?q=%C3%BC%20x HTTP/1.1\r\nhost: other\r\nX-Archive-Orig-content-length: 7\r\n\
                    content-length: 3\r\n\r\n";
        assert_eq!(of_request(&request, &url), head);
    }
}
