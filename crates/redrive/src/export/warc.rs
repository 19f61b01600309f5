//! Dead letters and their payloads as a web archive: WARC 1.1, one gzip member per record.
//!
//! A payload is read twice, once for its digests, which stand before it, and once to be written; it is never whole in
//! memory. Record ids come from what the record is about, so that two exports of the same letters are the same but for
//! the date at their beginning.

use std::fmt;
use std::io::{self, Cursor, Read, Seek, Write};

use data_encoding::BASE32;
use flate2::Compression;
use flate2::write::GzEncoder;
use redrive_core::dead::DeadLetter;
use redrive_core::failures::Failure;
use redrive_core::ids::JobId;
use redrive_core::payloads::{Payload, Response};
use redrive_core::time::Timestamp;
use sha1::{Digest, Sha1};
use url::Url;
use uuid::Uuid;

use super::head;
use super::request::{HttpRequest, began_at, web_address};

/// A web archive that is being written. After an error it is broken off and of no use.
#[derive(Debug)]
pub struct Warc<W> {
    out: W,
}

/// What a record is known by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RecordId(Uuid);

impl RecordId {
    /// The id of what happened to a job at an instant; a UUID of version 5 in the namespace of the job.
    fn of(job: &[u8; 16], kind: &str, at: Timestamp, attempt: u32) -> Self {
        let name = format!("{kind} {} {attempt}", at.as_millis());
        let hash = Sha1::new().chain_update(job).chain_update(name).finalize();
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&hash[..16]);
        Self(uuid::Builder::from_sha1_bytes(bytes).into_uuid())
    }
}

impl fmt::Display for RecordId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<urn:uuid:{}>", self.0)
    }
}

impl<W: Write> Warc<W> {
    /// Begins an archive with the record that says what wrote it.
    pub fn begin(out: W, now: Timestamp) -> io::Result<Self> {
        let mut warc = Self { out };
        let about = concat!(
            "software: Redrive/",
            env!("CARGO_PKG_VERSION"),
            "\r\nformat: WARC File Format 1.1\r\n",
            "conformsTo: http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/\r\n",
        );
        let id = RecordId::of(&[0; 16], "warcinfo", now, 0);
        let fields = Fields::new("warcinfo", id, now, "application/warc-fields");
        warc.write_bytes(fields, "", about.as_bytes())?;
        Ok(warc)
    }

    /// Writes the payload of a failure: as a response, with the request it answers if that is known, or else as a plain
    /// resource. Nothing is written of a failure without a payload. The body is read from its beginning; it is an error
    /// if it is not as long as the payload.
    pub fn evidence(
        &mut self,
        job: JobId,
        failure: &Failure,
        request: Option<&HttpRequest>,
        body: &mut (impl Read + Seek),
    ) -> io::Result<Option<RecordId>> {
        let Some(payload) = &failure.payload else { return Ok(None) };
        let id = |kind| RecordId::of(job.as_bytes(), kind, failure.at, failure.attempt);
        let at = began_at(failure);
        let Some((status, url)) = answered(&payload.response) else {
            let fields = Fields::new("resource", id("resource"), at, "application/octet-stream");
            let fields = fields.with("WARC-Target-URI", format_args!("urn:redrive:payload:{}", payload.hash));
            self.write(fields.truncated_as(payload), "", body, payload.size_bytes)?;
            return Ok(Some(id("resource")));
        };
        let fields = Fields::new("response", id("response"), at, "application/http;msgtype=response");
        let fields = fields.with("WARC-Target-URI", url).truncated_as(payload);
        let head = head::of_response(status, &payload.response.headers, payload.size_bytes);
        self.write(fields, &head, body, payload.size_bytes)?;
        if let Some(request) = request {
            let fields = Fields::new("request", id("request"), at, "application/http;msgtype=request");
            self.request(request, fields.with("WARC-Concurrent-To", id("response")))?;
        }
        Ok(Some(id("response")))
    }

    /// Writes the letter itself, as it is exported as JSON, beside the evidence that was written of it.
    pub fn letter(&mut self, letter: &DeadLetter, evidence: &[RecordId]) -> io::Result<()> {
        let id = RecordId::of(letter.id.as_bytes(), "metadata", letter.died_at, letter.attempts);
        let fields = Fields::new("metadata", id, letter.died_at, "application/json");
        let fields = fields.with("WARC-Target-URI", format_args!("urn:redrive:dead-letter:{}", letter.id));
        let fields = evidence.iter().fold(fields, |fields, record| fields.with("WARC-Concurrent-To", record));
        self.write_bytes(fields, "", &serde_json::to_vec(letter)?)
    }

    /// Ends the archive and gives back what it was written to.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }

    /// Writes a request; one that HTTP cannot have sent is left out.
    fn request(&mut self, request: &HttpRequest, fields: Fields) -> io::Result<()> {
        let Some(url) = web_address(&request.url) else { return Ok(()) };
        let head = head::of_request(request, &url);
        let body = request.body.as_deref().unwrap_or_default();
        self.write_bytes(fields.with("WARC-Target-URI", url), &head, body)
    }

    fn write_bytes(&mut self, fields: Fields, head: &str, body: &[u8]) -> io::Result<()> {
        self.write(fields, head, &mut Cursor::new(body), body.len() as u64)
    }

    fn write(&mut self, fields: Fields, head: &str, body: &mut (impl Read + Seek), body_bytes: u64) -> io::Result<()> {
        let mut digests = Digests { block: Sha1::new_with_prefix(head), payload: Sha1::new() };
        copy(body, body_bytes, &mut digests)?;
        let fields = fields.with_digests(digests).with("Content-Length", head.len() as u64 + body_bytes);
        let mut member = GzEncoder::new(&mut self.out, Compression::default());
        write!(member, "{}\r\n{head}", fields.lines)?;
        copy(body, body_bytes, &mut member)?;
        member.write_all(b"\r\n\r\n")?;
        member.finish()?;
        Ok(())
    }
}

/// The status and address of a response that HTTP can have given.
fn answered(response: &Response) -> Option<(u16, Url)> {
    let status = response.status.filter(|status| (100..1000).contains(status))?;
    Some((status, web_address(response.url.as_deref()?)?))
}

/// Copies a body, all of it: a record that is not as long as it says would spoil those that follow.
fn copy(body: &mut (impl Read + Seek), bytes: u64, out: &mut impl Write) -> io::Result<()> {
    body.rewind()?;
    // One more, to see that there is none.
    let copied = io::copy(&mut body.take(bytes.saturating_add(1)), out)?;
    if copied == bytes {
        return Ok(());
    }
    Err(io::Error::new(io::ErrorKind::InvalidData, format!("the payload is not the {bytes} bytes that were kept")))
}

/// The lines that a record begins with.
struct Fields {
    kind: &'static str,
    lines: String,
}

impl Fields {
    fn new(kind: &'static str, id: RecordId, at: Timestamp, content_type: &str) -> Self {
        let fields = Self { kind, lines: "WARC/1.1\r\n".to_owned() };
        let fields = fields.with("WARC-Type", kind).with("WARC-Record-ID", id);
        fields.with("WARC-Date", at).with("Content-Type", content_type)
    }

    /// Adds a line. What comes here are ids, addresses, times and numbers, none of which can have a line end in it.
    fn with(mut self, name: &str, value: impl fmt::Display) -> Self {
        self.lines.push_str(&format!("{name}: {value}\r\n"));
        self
    }

    fn truncated_as(self, payload: &Payload) -> Self {
        if payload.truncated { self.with("WARC-Truncated", "length") } else { self }
    }

    fn with_digests(self, digests: Digests) -> Self {
        let digest = |hash: Sha1| format!("sha1:{}", BASE32.encode(&hash.finalize()));
        let fields = self.with("WARC-Block-Digest", digest(digests.block));
        match fields.kind {
            "warcinfo" | "metadata" => fields,
            _ => fields.with("WARC-Payload-Digest", digest(digests.payload)),
        }
    }
}

/// What readers check a record with: SHA-1, because that is what all of them know.
struct Digests {
    block: Sha1,
    payload: Sha1,
}

impl Write for Digests {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.block.update(bytes);
        self.payload.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use flate2::bufread::GzDecoder;
    use serde_json::json;

    use super::*;
    use crate::export::fixture::{letter, request, response};

    const BODY: &[u8] = b"<html>\r\n\r\nWARC/1.1\r\n\xff\0";

    /// Writes a letter with all its payloads.
    fn export(letter: &DeadLetter, request: Option<&HttpRequest>) -> Vec<u8> {
        let mut warc = Warc::begin(Vec::new(), Timestamp::from_millis(0)).expect("begun");
        let mut records = Vec::new();
        for (failure, body) in letter.failures.iter().flatten().zip([b"".as_slice(), BODY, b"file"]) {
            records.extend(warc.evidence(letter.id, failure, request, &mut Cursor::new(body)).expect("written"));
        }
        warc.letter(letter, &records).expect("written");
        warc.finish().expect("finished")
    }

    /// The fields and the block of every record, each of which must be a gzip member of its own.
    fn records(mut archive: &[u8]) -> Vec<(String, Vec<u8>)> {
        let mut records = Vec::new();
        while !archive.is_empty() {
            let mut record = Vec::new();
            GzDecoder::new(&mut archive).read_to_end(&mut record).expect("a gzip member");
            let at = record.windows(4).position(|bytes| bytes == b"\r\n\r\n").expect("a blank line") + 4;
            let fields = String::from_utf8(record[..at].to_vec()).expect("text");
            let block = record[at..].strip_suffix(b"\r\n\r\n").expect("the end of a record").to_vec();
            assert_eq!(field(&fields, "Content-Length"), [block.len().to_string()]);
            assert_eq!(field(&fields, "WARC-Block-Digest"), [sha1(&block)]);
            records.push((fields, block));
        }
        records
    }

    fn field<'a>(fields: &'a str, name: &str) -> Vec<&'a str> {
        fields.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(": ")).collect()
    }

    fn sha1(bytes: &[u8]) -> String {
        format!("sha1:{}", BASE32.encode(&Sha1::digest(bytes)))
    }

    #[test]
    fn a_letter_is_its_evidence_and_itself() {
        let letter = letter(&response(), BODY.len());
        let records = records(&export(&letter, Some(&request())));
        let kinds: Vec<_> = records.iter().flat_map(|(fields, _)| field(fields, "WARC-Type")).collect();
        assert_eq!(kinds, ["warcinfo", "response", "request", "resource", "metadata"]);
        let ids: Vec<_> = records.iter().flat_map(|(fields, _)| field(fields, "WARC-Record-ID")).collect();
        let beside = |at: usize| field(&records[at].0, "WARC-Concurrent-To");
        assert_eq!(beside(2), [ids[1]]);
        assert_eq!(beside(4), [ids[1], ids[3]]);
        let urn = format!("urn:redrive:payload:{}", "22".repeat(32));
        assert_eq!(field(&records[3].0, "WARC-Target-URI"), [urn]);
        assert_eq!(records[3].1, b"file");
        assert_eq!(serde_json::from_slice::<DeadLetter>(&records[4].1).ok(), Some(letter));
    }

    #[test]
    fn a_response_is_what_was_kept() {
        let records = records(&export(&letter(&response(), BODY.len()), None));
        let (fields, block) = &records[1];
        assert_eq!(field(fields, "WARC-Date"), ["2025-11-15T14:02:02.250Z"], "when the attempt began");
        assert_eq!(field(fields, "WARC-Target-URI"), ["https://h.example/%C3%BC?q=1"]);
        assert_eq!(field(fields, "WARC-Truncated"), ["length"]);
        assert_eq!(field(fields, "WARC-Payload-Digest"), [sha1(BODY)]);
        assert!(block.starts_with(b"HTTP/1.1 403 \r\nContent-Type: text/html\r\n"));
        assert!(block.ends_with(&[b"\r\n\r\n", BODY].concat()));
        assert_eq!(records.len(), 4, "a request that is not known is not written");
    }

    #[test]
    fn without_status_or_address_there_is_no_response() {
        for response in
            [json!({}), json!({"status": 200}), json!({"status": 200, "url": "x"}), json!({"url": "https://h"})]
        {
            let records = records(&export(&letter(&response, BODY.len()), Some(&request())));
            assert_eq!(field(&records[1].0, "WARC-Type"), ["resource"]);
            assert_eq!(records[1].1, BODY);
        }
    }

    #[test]
    fn two_exports_are_the_same() {
        let export = || export(&letter(&response(), BODY.len()), Some(&request()));
        assert_eq!(export(), export());
    }

    #[test]
    fn a_payload_of_another_length_is_refused() {
        for wrong in [BODY.len() - 1, BODY.len() + 1] {
            let letter = letter(&response(), wrong);
            let failure = &letter.failures.as_ref().expect("failures")[1];
            let mut warc = Warc::begin(Vec::new(), Timestamp::from_millis(0)).expect("begun");
            let before = warc.out.len();
            let refused = warc.evidence(letter.id, failure, None, &mut Cursor::new(BODY)).expect_err("refused");
            assert_eq!(refused.kind(), io::ErrorKind::InvalidData);
            assert_eq!(warc.out.len(), before, "nothing was written");
        }
    }
}
