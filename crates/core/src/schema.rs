//! JSON schemas of values that are written as text.

/// Implements `JsonSchema` for a type that is written as text.
#[macro_export]
macro_rules! text_schema {
    ($name:ident, $($schema:tt)+) => {
        impl $crate::schemars::JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut $crate::schemars::SchemaGenerator) -> $crate::schemars::Schema {
                $crate::schemars::json_schema!($($schema)+)
            }
        }
    };
}
