//! Shapes of texts, for the document alone: what reads them is elsewhere, and refuses the same.

use serde_json::{Value, json};
use utoipa::openapi::schema::{ObjectBuilder, SchemaFormat, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

macro_rules! text {
    ($(#[$doc:meta])* $name:ident, $described:literal, $narrow:expr) => {
        $(#[$doc])*
        pub enum $name {}

        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                let narrow: fn(ObjectBuilder) -> ObjectBuilder = $narrow;
                let text = ObjectBuilder::new().schema_type(Type::String).description(Some($described));
                narrow(text).into()
            }
        }

        impl ToSchema for $name {}
    };
}

/// How names of pipelines, rounds and tokens are written.
const NAME: &str = "^[A-Za-z0-9_.-]{1,64}$";

text!(
    /// The name of a pipeline, a round or a token.
    Name,
    "1 to 64 letters, digits, `_`, `-` or `.`",
    |text| text.pattern(Some(NAME))
);
text!(
    /// The id of a worker, a replay or a try.
    Uuid,
    "a UUID",
    |text| text.format(Some(SchemaFormat::Custom("uuid".to_owned())))
);
text!(
    /// A lease.
    LeaseText,
    "a lease as POST /leases gave it",
    |text| text.pattern(Some(r"^[0-9a-f-]{36}\.[0-9a-f-]{36}\.[0-9a-f-]{1,36}$"))
);
text!(
    /// What a token may do.
    RoleName,
    "each may do what those before it may",
    |text| text.enum_values(Some(["viewer", "worker", "operator", "admin"]))
);
text!(
    /// What letters are worked on from.
    ReplayModeName,
    "`saved` payloads without the network, all anew, or what suits each letter",
    |text| text.enum_values(Some(["suited", "saved", "refetch"]))
);

/// The name of a pipeline in a schema that is written down.
pub fn name() -> Value {
    json!({"type": "string", "pattern": NAME})
}
