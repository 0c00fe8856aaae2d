//! MIG instances of a node, on the wire. Owns: the form of one, and of all of them in one line.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::scalar::Millis;

/// A MIG instance that is given out for a part of its GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct MigInstance {
    /// Its number among the GPUs of its node.
    pub index: u32,
    /// The number of the GPU of which it is a part.
    pub gpu: u32,
    /// Its slices and memory, such as `3g.40gb`.
    pub profile: String,
    /// The largest part of a GPU that it holds.
    pub share: Millis,
    /// True if a pod has it.
    pub in_use: bool,
}

impl MigInstance {
    /// Number of instances and of free ones, by size; none: there are none.
    #[must_use]
    pub fn summary(all: &[Self]) -> Option<String> {
        let mut kinds: BTreeMap<(Millis, &str), (u32, u32)> = BTreeMap::new();
        for one in all {
            let (count, free) = kinds.entry((one.share, &one.profile)).or_default();
            *count += 1;
            *free += u32::from(!one.in_use);
        }
        let kind = |((share, profile), (count, free)): ((Millis, &str), (u32, u32))| {
            format!("{count} × {profile} for {share} of a GPU, {free} free")
        };
        let kinds: Vec<_> = kinds.into_iter().map(kind).collect();
        (!kinds.is_empty()).then(|| kinds.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instances_are_counted_by_size() {
        let one = |index, profile: &str, share, in_use| MigInstance {
            index,
            gpu: 0,
            profile: profile.to_owned(),
            share: Millis(share),
            in_use,
        };
        assert_eq!(MigInstance::summary(&[]), None);
        let all = [
            one(0, "1g.10gb", 125, true),
            one(1, "1g.10gb", 125, false),
            one(2, "3g.40gb", 500, true),
        ];
        assert_eq!(
            MigInstance::summary(&all).as_deref(),
            Some("2 × 1g.10gb for 0.125 of a GPU, 1 free; 1 × 3g.40gb for 0.5 of a GPU, 0 free")
        );
    }
}
