//! Metadata of every object that belongs to a scope: the scope itself, and who created the object.

/// Declares a struct with these fields and those that all of them have.
macro_rules! with_scope {
    ($(#[$meta:meta])* pub struct $name:ident { $($fields:tt)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
        #[serde(rename_all = "camelCase")]
        pub struct $name {
            /// Id.
            pub id: String,
            /// Name.
            pub name: String,
            $($fields)*
            /// The cluster it is for.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub cluster_id: Option<String>,
            /// The department it is for.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub department_id: Option<String>,
            /// The project it is for: a number, unlike elsewhere.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub project_id: Option<u64>,
            /// Its creator.
            pub created_by: String,
            /// Time of its creation.
            pub created_at: $crate::Time,
            /// User of the last change.
            pub updated_by: String,
            /// Time of the last change.
            pub updated_at: $crate::Time,
        }
    };
}
pub(crate) use with_scope;
