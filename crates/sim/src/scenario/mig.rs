//! MIG instances as written: `{1g.10gb: 4, 3g.40gb: 1}`. Owns: reading and writing profiles and
//! their counts. Does not know about: the value of a slice, which depends on the policy.

use std::collections::BTreeMap;
use std::fmt;

use model::{MIG_SLICES, MigError, MigProfile, MigRequest};
use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::{Serialize, Serializer};

/// A profile, written as its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProfileName(pub MigProfile);

/// Number of instances of each profile.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct Mig(pub BTreeMap<ProfileName, u32>);

impl Mig {
    /// Counts instances.
    pub fn count(instances: impl IntoIterator<Item = MigProfile>) -> Self {
        let mut counts = BTreeMap::new();
        for profile in instances {
            *counts.entry(ProfileName(profile)).or_insert(0) += 1;
        }
        Self(counts)
    }

    /// The instances that one GPU is partitioned into; empty if it stays whole.
    ///
    /// # Errors
    /// The instances have more slices than a GPU.
    pub fn of_one_gpu(&self) -> Result<Vec<MigProfile>, String> {
        let slices = |(profile, count): (&ProfileName, &u32)| {
            u64::from(profile.0.slices()) * u64::from(*count)
        };
        let slices: u64 = self.0.iter().map(slices).sum();
        if slices > u64::from(MIG_SLICES) {
            return Err(format!("`mig` has {slices} slices; a GPU has {MIG_SLICES}"));
        }
        let instances =
            self.0.iter().flat_map(|(profile, &count)| (0..count).map(move |_| profile.0));
        Ok(instances.collect())
    }
}

impl From<&MigRequest> for Mig {
    fn from(request: &MigRequest) -> Self {
        Self(request.iter().map(|(profile, count)| (ProfileName(profile), count.into())).collect())
    }
}

impl Serialize for ProfileName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for ProfileName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Name;
        impl Visitor<'_> for Name {
            type Value = ProfileName;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a MIG profile such as 1g.10gb")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<ProfileName, E> {
                text.parse().map(ProfileName).map_err(|error: MigError| E::custom(error))
            }
        }
        deserializer.deserialize_str(Name)
    }
}
