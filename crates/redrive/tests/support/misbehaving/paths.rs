//! What each path does wrong.

use std::io;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::io::AsyncWriteExt;
use tokio::time::sleep;

use super::Counts;
use super::bodies;
use super::wire::{Request, Socket, chunk, hang, head, respond};

/// The date that `/retry-date` asks to wait for.
pub const RETRY_DATE: &str = "Fri, 01 Jan 2038 00:00:00 GMT";

const HTML: (&str, &str) = ("Content-Type", "text/html; charset=utf-8");
const JSON: (&str, &str) = ("Content-Type", "application/json");
const XML: (&str, &str) = ("Content-Type", "application/xml");

/// Serves one request.
pub(super) async fn serve(mut socket: impl Socket, counts: &Counts) -> io::Result<()> {
    let request = Request::read(&mut socket).await?;
    let visit = counts.visit(&request);
    let socket = &mut socket;
    match request.path() {
        "/reset" => return reset(socket),
        "/hang" => hang(socket).await?,
        "/headers-only-then-hang" => {
            head(socket, 200, &[HTML, ("Content-Length", "1000")]).await?;
            hang(socket).await?;
        }
        "/drip" => drip(socket).await?,
        "/short" => {
            head(socket, 200, &[HTML, ("Content-Length", "1000")]).await?;
            socket.write_all(b"<html>brok").await?;
        }
        "/short-without-notice" => {
            head(socket, 200, &[HTML, ("Content-Length", "1000")]).await?;
            socket.write_all(b"<html>brok").await?;
            return socket.flush().await;
        }
        "/short-once" if visit > 1 => respond(socket, 200, &[HTML], bodies::PAGE).await?,
        "/short-once" | "/short-chunked" => {
            head(socket, 200, &[HTML, ("Transfer-Encoding", "chunked")]).await?;
            chunk(socket, b"<html>brok").await?;
        }
        "/endless" => endless(socket).await?,
        "/echo" => respond(socket, 200, &[JSON], request.as_json().to_string()).await?,
        "/loop" => redirect(socket, "/loop").await?,
        path => match path.rsplit_once('/') {
            Some(("/big", count)) => big(socket, number(count)).await?,
            Some(("", _)) => plain(socket, &request).await?,
            _ => with_argument(socket, &request, visit).await?,
        },
    }
    socket.shutdown().await
}

/// The paths whose response is proper HTTP, whatever is in it.
async fn plain(socket: &mut impl Socket, request: &Request) -> io::Result<()> {
    let encoded = |name| [HTML, ("Content-Encoding", name)];
    match request.path() {
        "/page" => respond(socket, 200, &[HTML], bodies::PAGE).await,
        "/challenge200" => respond(socket, 200, &[HTML], bodies::CHALLENGE).await,
        "/gzip" => respond(socket, 200, &encoded("gzip"), bodies::gzip()).await,
        "/br" => respond(socket, 200, &encoded("br"), bodies::brotli()).await,
        "/zstd" => respond(socket, 200, &encoded("zstd"), bodies::zstd()).await,
        "/badgzip" => respond(socket, 200, &encoded("gzip"), b"this was never compressed").await,
        "/truncgzip" => respond(socket, 200, &encoded("gzip"), bodies::truncated_gzip()).await,
        "/latin1" => {
            respond(socket, 200, &[("Content-Type", "text/html; charset=ISO-8859-1")], bodies::latin1_page()).await
        }
        "/metacharset" => respond(socket, 200, &[("Content-Type", "text/html")], bodies::windows1252_page()).await,
        "/json" => respond(socket, 200, &[JSON], bodies::JSON).await,
        "/truncjson" => respond(socket, 200, &[JSON], bodies::TRUNCATED_JSON).await,
        "/xml" => respond(socket, 200, &[XML], bodies::XML).await,
        "/truncxml" => respond(socket, 200, &[XML], bodies::TRUNCATED_XML).await,
        "/retry-date" => respond(socket, 503, &[HTML, ("Retry-After", RETRY_DATE)], "later").await,
        _ => respond(socket, 404, &[HTML], "no such path").await,
    }
}

/// The paths that carry an argument, or have two parts.
async fn with_argument(socket: &mut impl Socket, request: &Request, visit: u32) -> io::Result<()> {
    if let Some(url) = request.target.strip_prefix("/redirect-to/") {
        return redirect(socket, url).await;
    }
    // Without the query, which is the client's own.
    if let Some((status, url)) = request.path().strip_prefix("/redirect-by/").and_then(|rest| rest.split_once('/')) {
        return respond(socket, number(status), &[("Location", url)], "").await;
    }
    match request.path().rsplit_once('/').unwrap_or_default() {
        ("/status", status) => status_only(socket, number(status)).await,
        ("/retry-after", wait) => respond(socket, 429, &[HTML, ("Retry-After", wait)], "too fast").await,
        ("/retry-date", wait) => {
            let until = Timestamp::now() + SignedDuration::from_secs(number(wait));
            let date = jiff::fmt::rfc2822::DateTimePrinter::new().timestamp_to_rfc9110_string(&until);
            respond(socket, 503, &[HTML, ("Retry-After", &date.expect("a date of this era"))], "later").await
        }
        ("/recovers", failures) if visit <= number(failures) => respond(socket, 503, &[HTML], "not yet").await,
        ("/recovers", _) => respond(socket, 200, &[HTML], bodies::PAGE).await,
        ("/redirect", "0") => respond(socket, 200, &[HTML], bodies::PAGE).await,
        ("/redirect", left) => redirect(socket, &format!("/redirect/{}", number::<u32>(left) - 1)).await,
        ("/cookies", "set") => {
            let cookie = ("Set-Cookie", "pass=through; Path=/cookies; HttpOnly");
            respond(socket, 302, &[("Location", "/cookies/check"), cookie], "").await
        }
        ("/cookies", "check") => {
            let held = request.header("cookie").is_some_and(|cookies| cookies.contains("pass=through"));
            let (status, text) = if held { (200, bodies::PAGE) } else { (401, "no cookie") };
            respond(socket, status, &[HTML], text).await
        }
        _ => respond(socket, 404, &[HTML], "no such path").await,
    }
}

/// The argument of a path; a test that gives a wrong one should fail loudly.
fn number<N: std::str::FromStr>(text: &str) -> N {
    text.parse().unwrap_or_else(|_| panic!("{text:?} is not a number that fits"))
}

/// Closes such that the client gets a reset instead of an end.
fn reset(socket: &mut impl Socket) -> io::Result<()> {
    socket.tcp().set_zero_linger()
}

async fn status_only(socket: &mut impl Socket, status: u16) -> io::Result<()> {
    if matches!(status, 204 | 304) {
        return head(socket, status, &[]).await;
    }
    respond(socket, status, &[HTML], format!("status {status}")).await
}

async fn redirect(socket: &mut impl Socket, to: &str) -> io::Result<()> {
    respond(socket, 302, &[("Location", to)], "").await
}

/// One byte at a time: never silent for long, never done.
async fn drip(socket: &mut impl Socket) -> io::Result<()> {
    head(socket, 200, &[HTML, ("Content-Length", "1000000000")]).await?;
    loop {
        socket.write_all(b".").await?;
        socket.flush().await?;
        sleep(Duration::from_millis(100)).await;
    }
}

async fn endless(socket: &mut impl Socket) -> io::Result<()> {
    head(socket, 200, &[HTML, ("Transfer-Encoding", "chunked")]).await?;
    let block = b"<p>and so on</p>\n".repeat(2000);
    loop {
        chunk(socket, &block).await?;
    }
}

async fn big(socket: &mut impl Socket, mebibytes: u32) -> io::Result<()> {
    let length = (u64::from(mebibytes) << 20).to_string();
    head(socket, 200, &[("Content-Type", "application/octet-stream"), ("Content-Length", &length)]).await?;
    for index in 0..mebibytes {
        socket.write_all(&bodies::big_mebibyte(index)).await?;
    }
    Ok(())
}
