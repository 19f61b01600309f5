//! Error types and codes of widely used HTTP clients, and what they mean.
//!
//! A name is looked up whole first, then by its last segment: `requests.exceptions.ReadTimeout` and
//! `ReadTimeout` are the same, and so are `Errno::ECONNRESET` (Ruby), `net::ERR_TIMED_OUT` (Chromium) and their last segments.
//! Whole names stand here only where the last segment alone would say too much or too little.
//!
//! Go's errors have one type for many things, so there, and only there, the end of the message is read.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::failures::{FailureReport, Reason};

/// What an error's code or type means, if a client that we know gave it that name.
pub(super) fn reason(report: &FailureReport) -> Option<Reason> {
    let error_type = report.error_type.as_deref();
    let in_go = || error_type.is_some_and(is_go).then(|| of_go(&report.message)).flatten();
    report.code.as_deref().and_then(named).or_else(in_go).or_else(|| error_type.and_then(named))
}

/// The HTTP status that a client tells in the message of an error that is about one: `404 Client Error: Not Found for url: …`,
/// `HTTP Error 404: Not Found`, `Request failed with status code 404`.
pub(super) fn status(report: &FailureReport) -> Option<u16> {
    let error_type = report.error_type.as_deref().map(last_segment)?;
    if !ABOUT_A_STATUS.contains(&error_type) {
        return None;
    }
    // An address may have any number in it.
    let told = report.message.split("://").next()?;
    let numbers = told.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| word.len() == 3);
    numbers.filter_map(|word| word.parse().ok()).find(|status| (400..600).contains(status))
}

/// The types of errors that tell of a response by its status.
const ABOUT_A_STATUS: &[&str] = &[
    // Python
    "HTTPError",
    "HTTPStatusError",
    "ClientResponseError",
    // JavaScript
    "AxiosError",
    "HttpError",
    "StatusCodeError",
    // Java, Ruby
    "HttpStatusException",
    "HttpResponseException",
    "HttpClientErrorException",
    "HttpServerErrorException",
    "HTTPClientException",
    "HTTPServerException",
    "HTTPFatalError",
];

fn named(name: &str) -> Option<Reason> {
    static BY_NAME: LazyLock<HashMap<&str, Reason>> =
        LazyLock::new(|| NAMES.iter().flat_map(|(reason, names)| names.iter().map(|name| (*name, *reason))).collect());
    BY_NAME.get(name).or_else(|| BY_NAME.get(last_segment(name))).copied()
}

/// What stands after the last `.`, `::`, `/`, `$` or `\\`.
fn last_segment(name: &str) -> &str {
    name.rsplit(['.', ':', '/', '$', '\\']).next().unwrap_or(name)
}

/// Whether a type is one of Go's: a pointer, as `%T` prints it, or an error of the packages that clients are made of.
fn is_go(error_type: &str) -> bool {
    let by_package = |(package, name): (&str, &str)| {
        ["net", "url", "context", "x509", "tls"].contains(&package) && !name.contains('.')
    };
    error_type.starts_with('*') || error_type.split_once('.').is_some_and(by_package)
}

/// How much of the end of a message is read.
const GO_MESSAGE_BYTES: usize = 1_000;

/// What Go's standard library says at the end of a message, most specific first.
const GO_SAYS: &[(&str, Reason)] = &[
    ("context deadline exceeded", Reason::Timeout),
    ("Client.Timeout", Reason::Timeout),
    ("i/o timeout", Reason::Timeout),
    ("handshake timeout", Reason::Timeout),
    ("timeout awaiting response headers", Reason::Timeout),
    ("no such host", Reason::Dns),
    ("server misbehaving", Reason::Dns),
    ("x509: ", Reason::Tls),
    ("tls: ", Reason::Tls),
    ("connection refused", Reason::Network),
    ("connection reset by peer", Reason::Network),
    ("broken pipe", Reason::Network),
    ("no route to host", Reason::Network),
    ("network is unreachable", Reason::Network),
    ("server closed idle connection", Reason::Network),
    ("unsupported protocol scheme", Reason::RejectedInput),
    (": EOF", Reason::Network),
    ("unexpected EOF", Reason::Network),
];

fn of_go(message: &str) -> Option<Reason> {
    let from = message.len().saturating_sub(GO_MESSAGE_BYTES);
    let from = (from..=message.len()).find(|at| message.is_char_boundary(*at))?;
    let end = &message[from..];
    GO_SAYS.iter().find(|(words, _)| end.contains(words)).map(|(_, reason)| *reason)
}

/// Names that Python's, JavaScript's, Go's, Java's and Ruby's clients, and the systems below them, give their errors.
#[rustfmt::skip]
pub(super) const NAMES: &[(Reason, &[&str])] = &[
    (Reason::Timeout, &[
        // Python
        "ReadTimeout", "ConnectTimeout", "WriteTimeout", "PoolTimeout", "Timeout", "timeout", "TimeoutError",
        "TimeoutException", "ReadTimeoutError", "ConnectTimeoutError", "ConnectionTimeoutError", "ServerTimeoutError",
        "SocketTimeoutError", "TCPTimedOutError", "UserTimeoutError",
        // JavaScript and browsers
        "ETIMEDOUT", "ESOCKETTIMEDOUT", "ECONNABORTED", "AbortError", "HeadersTimeoutError", "BodyTimeoutError",
        "UND_ERR_CONNECT_TIMEOUT", "UND_ERR_HEADERS_TIMEOUT", "UND_ERR_BODY_TIMEOUT", "ERR_TIMED_OUT",
        "ERR_CONNECTION_TIMED_OUT",
        // Go, Java, Ruby
        "deadlineExceededError", "SocketTimeoutException", "ConnectTimeoutException", "HttpTimeoutException",
        "HttpConnectTimeoutException", "ReadTimeoutException", "WriteTimeoutException",
        "ConnectionPoolTimeoutException", "ConnectionRequestTimeoutException", "InterruptedIOException",
        "OpenTimeout", "Timeout::Error",
    ]),
    (Reason::Dns, &[
        // Python
        "gaierror", "herror", "NameResolutionError", "DNSError", "DNSLookupError", "ClientConnectorDNSError",
        // JavaScript and browsers
        "ENOTFOUND", "EAI_AGAIN", "EAI_NONAME", "EAI_NODATA", "EAI_FAIL", "NXDOMAIN", "ERR_NAME_NOT_RESOLVED",
        "ERR_NAME_RESOLUTION_FAILED",
        // Java, Ruby
        "UnknownHostException", "UnresolvedAddressException", "ResolutionError",
    ]),
    (Reason::Tls, &[
        // Python
        "SSLError", "SSLCertVerificationError", "SSLEOFError", "SSLZeroReturnError", "CertificateError",
        "CertificateVerifyError", "ClientSSLError", "ClientConnectorSSLError", "ClientConnectorCertificateError",
        // JavaScript and browsers
        "CERT_HAS_EXPIRED", "CERT_NOT_YET_VALID", "CERT_UNTRUSTED", "CERT_REVOKED", "CERT_REJECTED",
        "CERT_SIGNATURE_FAILURE", "CERT_CHAIN_TOO_LONG", "DEPTH_ZERO_SELF_SIGNED_CERT", "SELF_SIGNED_CERT_IN_CHAIN",
        "UNABLE_TO_VERIFY_LEAF_SIGNATURE", "UNABLE_TO_GET_ISSUER_CERT", "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
        "HOSTNAME_MISMATCH", "EPROTO", "ERR_TLS_CERT_ALTNAME_INVALID", "ERR_TLS_HANDSHAKE_TIMEOUT",
        "ERR_SSL_PROTOCOL_ERROR", "ERR_SSL_WRONG_VERSION_NUMBER", "ERR_SSL_VERSION_OR_CIPHER_MISMATCH",
        "ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION", "ERR_CERT_AUTHORITY_INVALID", "ERR_CERT_COMMON_NAME_INVALID",
        "ERR_CERT_DATE_INVALID", "ERR_CERT_REVOKED", "ERR_CERT_INVALID",
        // Go, Java
        "CertificateVerificationError", "UnknownAuthorityError", "CertificateInvalidError", "HostnameError",
        "RecordHeaderError", "SSLException", "SSLHandshakeException", "SSLPeerUnverifiedException",
        "SSLProtocolException", "CertificateException", "CertPathValidatorException", "SunCertPathBuilderException",
    ]),
    (Reason::Network, &[
        // Python
        "ConnectionError", "ConnectionResetError", "ConnectionRefusedError", "ConnectionAbortedError",
        "BrokenPipeError", "ProxyError", "ChunkedEncodingError", "RequestException", "RequestsError", "ConnectError",
        "ReadError", "WriteError", "CloseError", "NetworkError", "ProtocolError", "RemoteProtocolError",
        "LocalProtocolError", "TransportError", "RequestError", "ClientConnectorError", "ClientConnectionError",
        "ClientConnectionResetError", "ClientOSError", "ClientPayloadError", "ServerDisconnectedError",
        "ServerConnectionError", "ClientProxyConnectionError", "ClientHttpProxyError", "MaxRetryError",
        "NewConnectionError", "URLError", "RemoteDisconnected", "BadStatusLine", "IncompleteRead",
        "IncompleteReadError", "CurlError", "ConnectionLost", "ConnectionDone", "ResponseNeverReceived",
        "ResponseFailed", "TunnelError",
        // JavaScript and browsers
        "ECONNRESET", "ECONNREFUSED", "EPIPE", "EHOSTUNREACH", "ENETUNREACH", "EHOSTDOWN", "ENETDOWN", "ENETRESET",
        "EADDRNOTAVAIL", "ENOTCONN", "ERR_NETWORK", "ERR_SOCKET_CLOSED", "ERR_STREAM_PREMATURE_CLOSE",
        "UND_ERR_SOCKET", "UND_ERR_CLOSED", "UND_ERR_DESTROYED", "UND_ERR_ABORTED",
        "UND_ERR_RES_CONTENT_LENGTH_MISMATCH", "HPE_INVALID_CONSTANT", "HPE_INVALID_HEADER_TOKEN",
        "HPE_INVALID_CONTENT_LENGTH", "HPE_INVALID_CHUNK_SIZE", "HPE_INVALID_VERSION",
        "HPE_UNEXPECTED_CONTENT_LENGTH", "HPE_CLOSED_CONNECTION", "FetchError", "ERR_CONNECTION_REFUSED",
        "ERR_CONNECTION_RESET", "ERR_CONNECTION_CLOSED", "ERR_CONNECTION_ABORTED", "ERR_CONNECTION_FAILED",
        "ERR_EMPTY_RESPONSE", "ERR_NETWORK_CHANGED", "ERR_INTERNET_DISCONNECTED", "ERR_ADDRESS_UNREACHABLE",
        "ERR_TUNNEL_CONNECTION_FAILED", "ERR_PROXY_CONNECTION_FAILED", "ERR_SOCKS_CONNECTION_FAILED",
        "ERR_HTTP2_PROTOCOL_ERROR", "ERR_HTTP2_STREAM_ERROR", "ERR_QUIC_PROTOCOL_ERROR",
        "ERR_INCOMPLETE_CHUNKED_ENCODING", "ERR_CONTENT_LENGTH_MISMATCH",
        // Go, Java, Ruby
        "OpError", "ConnectException", "NoRouteToHostException", "PortUnreachableException", "SocketException",
        "HttpHostConnectException", "NoHttpResponseException", "ConnectionClosedException", "ClosedChannelException",
        "ConnectionShutdownException", "StreamResetException", "PrematureCloseException", "ConnectionResetException",
        "ResourceAccessException", "WebClientRequestException", "SocketError", "ConnectionFailed",
        "KeepAliveDisconnected", "ServerBrokeConnection", "Net::HTTPBadResponse", "Net::HTTP::Persistent::Error",
    ]),
    (Reason::ServerError, &[
        // all of them
        "TooManyRedirects", "MaxRedirectsError", "RedirectLimitReached", "ERR_FR_TOO_MANY_REDIRECTS",
        "ERR_TOO_MANY_REDIRECTS", "ERR_BAD_RESPONSE",
    ]),
    (Reason::RejectedInput, &[
        // all of them
        "InvalidURL", "MissingSchema", "InvalidSchema", "InvalidProxyURL", "LocationParseError", "LocationValueError",
        "UnsupportedProtocol", "InvalidUrlClientError", "ERR_INVALID_URL", "ERR_UNSUPPORTED_PROTOCOL",
        "ERR_BAD_REQUEST", "MalformedURLException", "URISyntaxException", "InvalidURIError",
    ]),
    (Reason::MalformedPayload, &[
        // all of them
        "JSONDecodeError", "ContentDecodingError", "DecodingError", "ContentTypeError", "XMLSyntaxError",
        "UnicodeDecodeError", "Z_DATA_ERROR", "Z_BUF_ERROR", "ERR_CONTENT_DECODING_FAILED", "JsonParseException",
        "MalformedJsonException", "JsonSyntaxException", "JsonProcessingException", "JSON::ParserError",
        "Faraday::ParsingError",
    ]),
    (Reason::HandlerError, &[
        // names of others that end like one of the above
        "tarfile.ReadError", "pymongo.errors.WriteError",
    ]),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_means_one_thing() {
        let mut names: Vec<_> = NAMES.iter().flat_map(|(_, names)| *names).collect();
        let all = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all);
    }

    fn by_type(name: &str, message: &str) -> Option<Reason> {
        reason(&FailureReport { error_type: Some(name.into()), ..FailureReport::message(message) })
    }

    #[test]
    fn a_status_is_read_where_an_error_is_about_one() {
        let told = |error_type: &str, message: &str| {
            status(&FailureReport { error_type: Some(error_type.into()), ..FailureReport::message(message) })
        };
        let url = "https://h.example/500/404";
        assert_eq!(
            told("requests.exceptions.HTTPError", &format!("403 Client Error: Forbidden for url: {url}")),
            Some(403)
        );
        assert_eq!(told("urllib.error.HTTPError", "HTTP Error 429: Too Many Requests"), Some(429));
        assert_eq!(
            told("httpx.HTTPStatusError", &format!("Server error '502 Bad Gateway' for url '{url}'")),
            Some(502)
        );
        assert_eq!(told("AxiosError", "Request failed with status code 404"), Some(404));
        assert_eq!(told("org.jsoup.HttpStatusException", "HTTP error fetching URL. Status=410, URL=[x]"), Some(410));
        assert_eq!(told("requests.exceptions.HTTPError", &format!("no status for {url}")), None);
        assert_eq!(told("ValueError", "404 is not a price"), None);
    }

    #[test]
    fn whole_names_and_last_segments_are_known() {
        for (name, expected) in [
            ("requests.exceptions.ReadTimeout", Reason::Timeout),
            ("ReadTimeout", Reason::Timeout),
            ("httpx.ConnectError", Reason::Network),
            ("aiohttp.client_exceptions.ClientConnectorDNSError", Reason::Dns),
            ("urllib3.exceptions.NameResolutionError", Reason::Dns),
            ("socket.gaierror", Reason::Dns),
            ("socket.timeout", Reason::Timeout),
            ("playwright._impl._errors.TimeoutError", Reason::Timeout),
            ("selenium.common.exceptions.TimeoutException", Reason::Timeout),
            ("ssl.SSLCertVerificationError", Reason::Tls),
            ("requests.exceptions.TooManyRedirects", Reason::ServerError),
            ("requests.exceptions.InvalidURL", Reason::RejectedInput),
            ("requests.exceptions.JSONDecodeError", Reason::MalformedPayload),
            ("ECONNRESET", Reason::Network),
            ("Errno::ECONNREFUSED", Reason::Network),
            ("Net::OpenTimeout", Reason::Timeout),
            ("Timeout::Error", Reason::Timeout),
            ("OpenSSL::SSL::SSLError", Reason::Tls),
            ("Faraday::ConnectionFailed", Reason::Network),
            ("java.net.SocketTimeoutException", Reason::Timeout),
            ("java.net.UnknownHostException", Reason::Dns),
            ("javax.net.ssl.SSLHandshakeException", Reason::Tls),
            ("org.apache.http.NoHttpResponseException", Reason::Network),
            ("GuzzleHttp\\Exception\\ConnectException", Reason::Network),
        ] {
            assert_eq!(by_type(name, "x"), Some(expected), "{name}");
        }
        for unknown in
            ["KeyError", "Error", "", "tarfile.TarError", "dateutil.parser.ParserError", "http.client.HTTPException"]
        {
            assert_eq!(by_type(unknown, "it said: connection refused"), None, "{unknown}: messages are not searched");
        }
        assert_eq!(by_type("tarfile.ReadError", "x"), Some(Reason::HandlerError), "a name of somebody else's");
    }

    #[test]
    fn the_code_says_more_than_the_type() {
        let report = |code: &str| {
            reason(&FailureReport {
                error_type: Some("RequestError".into()),
                ..FailureReport::message("x").with_code(code)
            })
        };
        assert_eq!(report("ENOTFOUND"), Some(Reason::Dns));
        assert_eq!(report("UND_ERR_HEADERS_TIMEOUT"), Some(Reason::Timeout));
        assert_eq!(report("net::ERR_CERT_DATE_INVALID"), Some(Reason::Tls));
        assert_eq!(report("exit_1"), Some(Reason::Network), "a code that nobody knows leaves it to the type");
    }

    #[test]
    fn the_messages_of_go_are_read() {
        for (message, expected) in [
            (
                "Get \"https://a.example/\": context deadline exceeded (Client.Timeout exceeded while awaiting headers)",
                Reason::Timeout,
            ),
            ("Get \"https://a.example/\": dial tcp 10.0.0.1:443: i/o timeout", Reason::Timeout),
            ("Get \"https://a.example/\": dial tcp: lookup a.example: no such host", Reason::Dns),
            (
                "Get \"https://a.example/\": tls: failed to verify certificate: x509: certificate has expired",
                Reason::Tls,
            ),
            ("Get \"http://a.example/\": dial tcp 127.0.0.1:1: connect: connection refused", Reason::Network),
            ("Get \"http://a.example/\": EOF", Reason::Network),
            ("Get \"nonsense\": unsupported protocol scheme \"\"", Reason::RejectedInput),
        ] {
            assert_eq!(by_type("*url.Error", message), Some(expected), "{message}");
        }
        assert_eq!(by_type("*net.OpError", "dial tcp: odd"), Some(Reason::Network));
        assert_eq!(by_type("context.deadlineExceededError", "x"), Some(Reason::Timeout));
        assert_eq!(by_type("*errors.errorString", "no price"), None);
    }

    /// Whatever a target puts into a message costs no more than its length.
    #[test]
    fn long_messages_are_read_at_their_end_only() {
        let message = format!("connection refused{}", "é".repeat(1 << 20));
        assert_eq!(by_type("*url.Error", &message), None);
    }
}
