//! Published fields that this server does not act on yet. Owns: how they are declared, and when one
//! requests an effect and is refused. A misspelled field is another matter: it is unknown.

use serde_json::Value;

/// A published field that this server does not act on yet. Accepted if it requests no effect.
pub type Unsupported = Option<Value>;

/// Declares a struct with the fields we act on and those we do not yet, and the list of the latter.
macro_rules! with_unsupported {
    (
        $(#[$meta:meta])* pub struct $name:ident {
            $( $(#[$doc:meta])* pub $field:ident: $kind:ty, )*
            ---
            $( $unsupported:ident: $wire:literal, )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
        #[serde(rename_all = "camelCase", deny_unknown_fields)]
        pub struct $name {
            $( $(#[$doc])*
               #[serde(default, skip_serializing_if = "Option::is_none")]
               pub $field: Option<$kind>, )*
            $( /// Not acted on yet.
               #[serde(default, skip_serializing_if = "Option::is_none", rename = $wire)]
               #[schema(value_type = Option<Value>)]
               pub $unsupported: $crate::Unsupported, )*
        }

        impl $name {
            /// These values, and where there is none that of `below`.
            #[must_use]
            pub fn over(self, below: Self) -> Self {
                Self {
                    $( $field: $crate::inherit::inherit(self.$field, below.$field), )*
                    $( $unsupported: self.$unsupported.or(below.$unsupported), )*
                }
            }

            /// The fields that ask for something this server does not do yet.
            #[must_use]
            pub fn not_yet(&self) -> Vec<&'static str> {
                let fields: &[(&'static str, &$crate::Unsupported)] = &[$( ($wire, &self.$unsupported), )*];
                let asked = fields.iter().filter(|(_, value)| $crate::asks_for_something(value));
                asked.map(|(name, _)| *name).collect()
            }
        }
    };
}
pub(crate) use with_unsupported;

/// True if an unsupported field requests an effect: empty lists, `false` and `null` do not.
#[must_use]
pub fn asks_for_something(value: &Unsupported) -> bool {
    match value {
        None | Some(Value::Null | Value::Bool(false)) => false,
        Some(Value::Array(items)) => !items.is_empty(),
        Some(Value::Object(fields)) => !fields.is_empty(),
        Some(_) => true,
    }
}
