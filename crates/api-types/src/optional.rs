//! Structs all of whose fields may be left out. Owns: how they are declared.

/// Declares a struct all of whose fields may be left out.
macro_rules! optional {
    (
        $(#[$meta:meta])* pub struct $name:ident {
            $( $(#[$doc:meta])* pub $field:ident: $kind:ty, )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
        #[serde(rename_all = "camelCase", deny_unknown_fields)]
        pub struct $name {
            $( $(#[$doc])*
               #[serde(default, skip_serializing_if = "Option::is_none")]
               pub $field: Option<$kind>, )*
        }
    };
}
pub(crate) use optional;
