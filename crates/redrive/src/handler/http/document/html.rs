//! Pages, read as a browser without scripts reads them.
//!
//! The parser knows no limit and has quadratic corners: deep nesting (servo/html5ever#788), many attributes on an
//! element, formatting tags that are opened again in every paragraph. So it is fed tag by tag, and given up on when a
//! cap is reached. Whether a `<` begins a tag is not guessed but seen: the tokenizer hands on nothing while it is
//! inside of one, and hands on text at once.

use std::cell::Cell;

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::{BufferQueue, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts};
use html5ever::tree_builder::{TreeBuilder, TreeBuilderOpts, TreeSink};
use html5ever::{TokenizerResult, local_name};
use scraper::{Html, HtmlTreeSink};
use tokio_util::sync::CancellationToken;

use super::caps::{ATTRIBUTE_BYTES_COPIED_MAX, ATTRIBUTES_MAX, ATTRIBUTES_PER_ELEMENT_MAX, Cap, DEPTH_MAX, NODES_MAX};
use super::tags::TagReader;
use super::{Format, Malformed};

/// Of the nodes that are new, one in so many has its depth looked at.
const SAMPLE: usize = 16;

type Builder = TreeBuilder<<HtmlTreeSink as TreeSink>::Handle, HtmlTreeSink>;

/// Parses a page. What stands in `<noscript>` is part of it. Once `stop` is cancelled nobody wants it any more, and what
/// there is of it is given back.
pub(super) fn parse(text: &str, stop: &CancellationToken) -> Result<Html, Malformed> {
    let mut reader = Reader::new(text);
    while reader.at < text.len() && !stop.is_cancelled() {
        reader.feed(reader.bytes_through(b'<'));
        reader.markup().and_then(|()| reader.check()).map_err(|cap| cap.exceeded(Format::Html, &text[..reader.at]))?;
    }
    Ok(reader.finish())
}

/// The tree builder, and what the tokenizer hands on to it.
struct Watched {
    builder: Builder,
    /// Tokens so far, errors aside.
    tokens: Cell<usize>,
    /// Attributes of all `html` and `body` tags: later ones are added to the first.
    merged: Cell<usize>,
}

impl TokenSink for Watched {
    type Handle = <HtmlTreeSink as TreeSink>::Handle;

    fn process_token(&self, token: Token, line: u64) -> TokenSinkResult<Self::Handle> {
        if !matches!(token, Token::ParseError(_)) {
            self.tokens.set(self.tokens.get() + 1);
        }
        if let Token::TagToken(tag) = &token {
            debug_assert!(tag.attrs.len() <= ATTRIBUTES_PER_ELEMENT_MAX, "they were not counted before");
        }
        if let Token::TagToken(tag) = &token
            && [local_name!("html"), local_name!("body")].contains(&tag.name)
        {
            self.merged.set(self.merged.get() + tag.attrs.len());
        }
        self.builder.process_token(token, line)
    }

    fn end(&self) {
        self.builder.end();
    }

    fn adjusted_current_node_present_but_not_in_html_namespace(&self) -> bool {
        self.builder.adjusted_current_node_present_but_not_in_html_namespace()
    }
}

/// A page on its way through the parser.
struct Reader<'a> {
    text: &'a str,
    /// How much of it the parser has.
    at: usize,
    tokenizer: Tokenizer<Watched>,
    input: BufferQueue,
    /// Nodes and attributes of the tree when it was last looked at, and nodes when a depth was.
    nodes: usize,
    attributes: usize,
    attribute_bytes: usize,
    sampled: usize,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str) -> Self {
        let options = TreeBuilderOpts { scripting_enabled: false, ..TreeBuilderOpts::default() };
        let builder = TreeBuilder::new(HtmlTreeSink::new(Html::new_document()), options);
        let watched = Watched { builder, tokens: Cell::new(0), merged: Cell::new(0) };
        let tokenizer = Tokenizer::new(watched, TokenizerOpts::default());
        let input = BufferQueue::default();
        Self { text, at: 0, tokenizer, input, nodes: 0, attributes: 0, attribute_bytes: 0, sampled: 0 }
    }

    fn rest(&self) -> &'a [u8] {
        &self.text.as_bytes()[self.at..]
    }

    /// Gives the parser more of the text, up to a boundary between characters; says whether it handed anything on.
    fn feed(&mut self, bytes: usize) -> bool {
        let before = self.tokenizer.sink.tokens.get();
        self.input.push_back(StrTendril::from_slice(&self.text[self.at..self.at + bytes]));
        self.at += bytes;
        while !matches!(self.tokenizer.feed(&self.input), TokenizerResult::Done) {}
        self.tokenizer.sink.tokens.get() > before
    }

    /// How many bytes there are up to the next such one, it too.
    fn bytes_through(&self, byte: u8) -> usize {
        self.rest().iter().position(|other| *other == byte).map_or(self.rest().len(), |at| at + 1)
    }

    /// Feeds what follows a `<`: a tag, with its attributes counted first, or a comment. Anything else is text.
    fn markup(&mut self) -> Result<(), Cap> {
        match self.rest() {
            [b'/', b'>', ..] => _ = self.feed(2),
            [b'/', letter, ..] | [letter, ..] if letter.is_ascii_alphabetic() => return self.tag(),
            [b'!' | b'?' | b'/', ..] if !self.feed(1) => {
                while !self.at_end() && !self.feed(self.bytes_through(b'>')) {}
            }
            _ => {}
        }
        Ok(())
    }

    /// Feeds a tag, if it is one: inside of a script it is text, which is seen as soon as its name is over.
    fn tag(&mut self) -> Result<(), Cap> {
        let name_ends = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'/' | b'>');
        let end = self.rest().iter().skip(1).position(name_ends).map_or(self.rest().len(), |at| at + 2);
        let is_over = self.rest()[end - 1] == b'>';
        if self.feed(end) || is_over {
            return Ok(());
        }
        let mut tag = TagReader::default();
        while !self.at_end() && !tag.is_ended() {
            let bytes = self.bytes_through(b'>');
            if tag.read(&self.rest()[..bytes]) > ATTRIBUTES_PER_ELEMENT_MAX {
                return Err(Cap::ElementAttributes);
            }
            if self.feed(bytes) {
                break;
            }
        }
        Ok(())
    }

    fn at_end(&self) -> bool {
        self.at == self.text.len()
    }

    /// Looks at what the tree has become.
    fn check(&mut self) -> Result<(), Cap> {
        let sink = &self.tokenizer.sink;
        let page = sink.builder.sink.0.borrow();
        let nodes = page.tree.nodes();
        let (count, new) = (nodes.len(), nodes.len() - self.nodes);
        for element in page.tree.nodes().rev().take(new).filter_map(|node| node.value().as_element()) {
            self.attributes += element.attrs.len();
            self.attribute_bytes += element.attrs().map(|(name, value)| name.len() + value.len()).sum::<usize>();
        }
        self.nodes = count;
        if sink.merged.get() > ATTRIBUTES_PER_ELEMENT_MAX {
            return Err(Cap::ElementAttributes);
        }
        if self.attributes > ATTRIBUTES_MAX {
            return Err(Cap::Attributes);
        }
        if self.attribute_bytes > self.text.len() + ATTRIBUTE_BYTES_COPIED_MAX {
            return Err(Cap::AttributeBytes);
        }
        if count > NODES_MAX {
            return Err(Cap::Nodes);
        }
        let unseen = count - self.sampled;
        if unseen >= SAMPLE {
            self.sampled = count;
            if nodes.rev().take(unseen).step_by(SAMPLE).any(|node| node.ancestors().nth(DEPTH_MAX).is_some()) {
                return Err(Cap::Depth);
            }
        }
        Ok(())
    }

    fn finish(self) -> Html {
        self.tokenizer.end();
        self.tokenizer.sink.builder.sink.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use scraper::Selector;

    fn page(text: &str) -> Result<Html, Malformed> {
        parse(text, &CancellationToken::new())
    }

    fn texts(page: &Html, css: &str) -> Vec<String> {
        let selector = Selector::parse(css).expect("a selector");
        page.select(&selector).map(|element| element.text().collect()).collect()
    }

    #[test]
    fn html_always_parses() {
        for text in ["", "\u{0}<<<>", "<p>half a par", "</html>", "plain", "<", "</", "<a b='", "<!--", "</>", "é<é"]
        {
            assert_eq!(page(text), Ok(Html::parse_document(text)), "{text:?}");
        }
    }

    #[test]
    fn what_stands_in_noscript_is_part_of_a_page() {
        let page = page("<body><noscript><b>here</b></noscript>").expect("a page");
        assert_eq!(texts(&page, "noscript b"), ["here"]);
    }

    #[test]
    fn pieces_make_the_same_page_as_the_whole() {
        let odd = "<script>if (a<b && c</script >d<!-- <b> --!><svg><![CDATA[<x>]]></svg><textarea></b></textarea>&am<i a='>'>&lt";
        let text: String = (0..2_000).map(|n| format!("<p class='é{n}'>&amp;ü € {n}\r\n<!-- {n} -->{odd}")).collect();
        assert_eq!(page(&text).expect("a page"), Html::parse_document(&text));
    }

    #[test]
    fn nesting_without_bound_is_refused_soon() {
        for tag in ["<div>", "<ul><li>", "<b><div>", "<span>", "<svg><g>", "</body><!-- --><div>"] {
            let error = page(&tag.repeat(200_000)).expect_err("refused");
            assert_eq!(error.code(), "HtmlTooDeep", "{tag}");
        }
        let error = page(&"<p><div>\n".repeat(9_000)).expect_err("refused");
        assert!(error.to_string().ends_with("nested more than 512 deep"), "{error}");
        assert!(error.line > 100 && error.column > 0);
        assert!(page(&"<div>".repeat(500)).is_ok());
    }

    #[test]
    fn many_attributes_are_refused_wherever_they_hide() {
        let attributes: String = (0..1_200).map(|n| format!(" x{n}=y")).collect();
        let before = [
            "",
            "text &am",
            "a<b ",
            "<a b='>' ",
            "<a b='",
            "<a b=",
            "</>",
            "<?",
            "<!",
            "<!-->",
            "<!--",
            "<!-- <b x='-->",
            "<!doctype a \"",
            "<script>a</script",
            "<script><!</script",
            "<script><!--<script>",
            "<script>a<b x='</script>",
            "<textarea></textarea",
            "<select><title>",
            "<svg><title>",
            "<svg><![CDATA[]]>",
            "<svg><![CDATA[<b x=\"]]>",
            "<svg><![CDATA[\0<b x=\"]]>",
            "<plaintext>",
            "\0<",
            "<<",
        ];
        let mut refused = 0;
        for before in before {
            for tag in ["<a", "</a", ""] {
                // The sink panics if a tag gets past the count.
                if let Err(error) = page(&format!("{before}{tag}{attributes}>")) {
                    assert_eq!(error.code(), "TooManyAttributes", "{before}{tag}");
                    refused += 1;
                }
            }
        }
        assert!(refused > 30, "{refused}");
        let said = page(&format!("<p>\n<a{attributes}>")).expect_err("refused").to_string();
        assert!(said.ends_with("more than 1000 attributes on one element") && said.contains("line 2"), "{said}");
        let within: String = (0..1_000).map(|n| format!(" x{n}=y")).collect();
        assert!(page(&format!("<a{within}>")).is_ok());
    }

    #[test]
    fn attributes_that_are_added_later_count_too() {
        let bodies: String = (0..3_000).map(|n| format!("<body a{n}>")).collect();
        assert_eq!(page(&bodies).expect_err("refused").code(), "TooManyAttributes");
    }

    #[test]
    fn what_the_parser_multiplies_is_counted() {
        // Every paragraph opens all formatting elements again, with their attributes.
        let attributes: String = (0..800).map(|n| format!(" x{n}")).collect();
        let formats: String = (0..50).map(|n| format!("<b i{n}{attributes}>")).collect();
        let error = page(&format!("<p>{formats}</p>{}", "<p>x</p>".repeat(20_000))).expect_err("refused");
        assert!(error.message.contains("attributes in all"), "{error}");
    }

    #[test]
    fn long_attributes_that_the_parser_copies_are_counted() {
        let classes: String = (0..100_000).map(|n| format!("{n:x} ")).collect();
        for long in [format!("id='{}'", "x".repeat(1 << 20)), format!("class='{classes}'"), "x".repeat(1 << 20)] {
            let error = page(&format!("<p><b {long}>{}", "<p>x".repeat(20_000))).expect_err("refused");
            assert_eq!(error.code(), "TooManyAttributes");
            assert!(error.message.ends_with("longer than the document by 16 MiB"), "{error}");
            assert!(page(&format!("<b {long}>{}", "<p>x".repeat(5))).is_ok(), "it may be there, and a few times");
        }
        let many: String = (0..200).map(|n| format!("<p><img src='{n}{}'>", "x".repeat(100_000))).collect();
        assert!(page(&many).is_ok(), "what stands in the page itself may be longer");
    }

    #[test]
    fn a_page_that_nobody_wants_is_not_read_on() {
        let stop = CancellationToken::new();
        stop.cancel();
        assert!(parse(&"<p>".repeat(1_000), &stop).is_ok_and(|page| page.tree.nodes().len() < 10));
    }
}
