//! The most of everything that a document may have.
//!
//! Parsers have no limits of their own, look for duplicate attributes in quadratic time, and keep some 170 bytes per
//! node and 40 (XML: 120) per attribute besides the text. With these caps a document takes at most 400 MB, whatever is
//! in it. Real pages stay far below: of thirty, the richest had 64 attributes on an element, 3,600 in all, 6,000 nodes
//! and was 31 deep.
//!
//! A tree shares the values of attributes that the parser copied, yet who reads it does not: each element has a list of
//! its classes as soon as a selector names one. So the bytes of attributes are summed over the tree as if none was shared.

use super::{Format, Malformed, end_of};

/// The deepest nesting that is read, as in browsers; below it, parsing and matching get slow without bound.
pub(super) const DEPTH_MAX: usize = 512;

/// The most nodes: elements, texts and comments.
pub(super) const NODES_MAX: usize = 1_000_000;

/// The most attributes of one element.
pub(super) const ATTRIBUTES_PER_ELEMENT_MAX: usize = 1_000;

/// The most attributes of all elements.
pub(super) const ATTRIBUTES_MAX: usize = 1_000_000;

/// By how many bytes the attributes of the whole tree may be longer than the document: formatting elements are opened again in
/// every paragraph, with all of their attributes.
pub(super) const ATTRIBUTE_BYTES_COPIED_MAX: usize = 16 << 20;

/// The most prefixes of namespaces: every name with a prefix is compared with them.
pub(super) const PREFIXES_MAX: usize = 256;

/// The most text that the entities of a DTD may become, in bytes, and the most comparisons to find them.
pub(super) const ENTITIES_COST_MAX: usize = 64 << 20;

/// A cap that a document is above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cap {
    /// How deep elements are nested.
    Depth,
    /// Nodes of the tree.
    Nodes,
    /// Attributes of one element.
    ElementAttributes,
    /// Attributes in all.
    Attributes,
    /// Bytes of attributes in all, above those of the document itself.
    AttributeBytes,
    /// Prefixes of namespaces, or elements that declare them.
    Namespaces,
    /// What the entities of a DTD become.
    Entities,
}

impl Cap {
    /// A stable name to group failures by.
    pub(super) const fn code(self, format: Format) -> &'static str {
        match (self, format) {
            (Self::Depth, Format::Xml) => "XmlTooDeep",
            (Self::Depth, _) => "HtmlTooDeep",
            (Self::Nodes, _) => "TooManyNodes",
            (Self::ElementAttributes | Self::Attributes | Self::AttributeBytes, _) => "TooManyAttributes",
            (Self::Namespaces, _) => "TooManyNamespaces",
            (Self::Entities, _) => "TooManyEntities",
        }
    }

    fn says(self) -> String {
        match self {
            Self::Depth => format!("nested more than {DEPTH_MAX} deep"),
            Self::Nodes => format!("more than {NODES_MAX} nodes"),
            Self::ElementAttributes => format!("more than {ATTRIBUTES_PER_ELEMENT_MAX} attributes on one element"),
            Self::Attributes => format!("more than {ATTRIBUTES_MAX} attributes in all"),
            Self::AttributeBytes => {
                format!("attributes that become longer than the document by {} MiB", ATTRIBUTE_BYTES_COPIED_MAX >> 20)
            }
            Self::Namespaces => {
                format!("more than {PREFIXES_MAX} prefixes of namespaces, or too many elements with them")
            }
            Self::Entities => format!("entities that hold markup, or become more than {ENTITIES_COST_MAX} bytes"),
        }
    }

    /// What is wrong with a document that is above this cap at the end of what was read of it.
    pub(super) fn exceeded(self, format: Format, read: &str) -> Malformed {
        let (line, column) = end_of(read);
        Malformed { format, truncated: false, cap: Some(self), line, column, message: self.says() }
    }
}
