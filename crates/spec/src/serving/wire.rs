//! Forms of audiences, targets and tools in documents, where they differ from the types.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{Audience, Metric, Target};

#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct AudienceWire {
    audience: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    users: Vec<String>,
}

impl From<Audience> for AudienceWire {
    fn from(audience: Audience) -> Self {
        let (word, users) = match audience {
            Audience::Everyone => ("everyone", Vec::new()),
            Audience::Authenticated => ("authenticated", Vec::new()),
            Audience::Users(users) => ("users", users.into_iter().collect()),
        };
        Self { audience: word.to_owned(), users }
    }
}

impl From<AudienceWire> for Audience {
    fn from(wire: AudienceWire) -> Self {
        match wire.audience.as_str() {
            "everyone" => Self::Everyone,
            "authenticated" => Self::Authenticated,
            "users" => Self::Users(wire.users.into_iter().collect()),
            // An audience that this version does not know is open to no one.
            _ => Self::Users(BTreeSet::new()),
        }
    }
}

/// Form of a target in documents: its fields stand beside the number of replicas.
pub(crate) mod target {
    use serde::{Deserializer, Serializer};

    use super::{Deserialize, Metric, Serialize, Target};

    #[derive(Serialize, Deserialize)]
    struct Wire {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        metric: Option<Metric>,
        #[serde(default)]
        threshold: u32,
        #[serde(default)]
        percent_millis: u32,
    }

    #[expect(clippy::ref_option, reason = "the signature is serde's")]
    pub(crate) fn serialize<S: Serializer>(
        target: &Option<Target>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        let wire = Wire {
            metric: target.map(|target| target.metric),
            threshold: target.map_or(0, |target| target.threshold),
            percent_millis: target.map_or(0, |target| target.percent_millis),
        };
        wire.serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Target>, D::Error> {
        let Wire { metric, threshold, percent_millis } = Wire::deserialize(from)?;
        Ok(metric.map(|metric| Target { metric, threshold, percent_millis }))
    }
}

/// The tool behind a port: its type and its name.
pub(crate) mod tool {
    use serde::{Deserializer, Serializer};

    use super::{Deserialize, Serialize};

    type Tool = (Option<String>, Option<String>);

    #[derive(Serialize, Deserialize)]
    struct Wire {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool_type: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool_name: Option<String>,
    }

    pub(crate) fn serialize<S: Serializer>(tool: &Tool, to: S) -> Result<S::Ok, S::Error> {
        let (tool_type, tool_name) = tool.clone();
        Wire { tool_type, tool_name }.serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Tool, D::Error> {
        let Wire { tool_type, tool_name } = Wire::deserialize(from)?;
        Ok((tool_type, tool_name))
    }
}
