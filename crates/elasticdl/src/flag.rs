//! Description of a flag. Owns: the forms of values, and the treatment of a flag without effect.
//! Does not know about: the list of flags (`flags`), and parsing (`parse`).

use crate::values;

/// A published flag.
#[derive(Debug, Clone, Copy)]
pub struct Flag {
    /// Its name, without the dashes.
    pub name: &'static str,
    /// Form of its value.
    pub takes: Takes,
    /// Default value; `None` = no value.
    pub default: Option<&'static str>,
    /// True if it must be given.
    pub required: bool,
    /// Its effect in this program.
    pub means: Means,
    /// Help text.
    pub help: &'static str,
    /// True if help leaves it out.
    pub is_hidden: bool,
}

/// Form of a flag's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    /// Any text.
    Text,
    /// A whole number, which may be negative.
    Integer,
    /// A whole number from 0 on.
    Count,
    /// A whole number from 1 on.
    Positive,
    /// No value, which inverts the switch, or a word for yes or no; as published, any other means
    /// no.
    Switch,
    /// No value, which inverts the switch, or true or false.
    OnOff,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// Cores in thousandths, such as `1000m`.
    Millicores,
    /// Memory, such as `4096Mi`.
    Memory,
    /// Resources by name, such as `cpu=1,memory=4096Mi`.
    Resources,
    /// Variables of the environment, such as `A=1,B=2`.
    Variables,
    /// Volumes, such as `host_path=/data,mount_path=/data`.
    Volumes,
    /// The workers with high priority.
    Priority,
}

/// Effect of a flag in this program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Means {
    /// The published effect.
    Published,
    /// No effect, and the job is the same without it. The user gets this note.
    Nothing(&'static str),
    /// No effect, but the job would differ from a published one: it is refused with this text.
    Refused(&'static str),
}

impl Flag {
    /// An optional flag without a default value.
    #[must_use]
    pub const fn new(name: &'static str, takes: Takes, help: &'static str) -> Self {
        let (means, is_hidden) = (Means::Published, false);
        Self { name, takes, default: None, required: false, means, help, is_hidden }
    }

    /// Adds a default value.
    #[must_use]
    pub const fn or(self, default: &'static str) -> Self {
        Self { default: Some(default), ..self }
    }

    /// Makes it required.
    #[must_use]
    pub const fn required(self) -> Self {
        Self { required: true, ..self }
    }

    /// Marks it as without effect, for this reason.
    #[must_use]
    pub const fn nothing(self, why: &'static str) -> Self {
        Self { means: Means::Nothing(why), ..self }
    }

    /// The flag on a command on which it has no effect, for this reason: taken, and left out of help.
    #[must_use]
    pub const fn elsewhere(self, why: &'static str) -> Self {
        let means = Means::Nothing(why);
        Self { default: None, required: false, means, is_hidden: true, ..self }
    }

    /// Marks it as refused, for this reason.
    #[must_use]
    pub const fn refused(self, why: &'static str) -> Self {
        Self { means: Means::Refused(why), ..self }
    }
}

impl Takes {
    /// Validates a value, and returns it as typed; a word of a switch becomes `true` or `false`.
    ///
    /// # Errors
    /// The text lists the allowed values.
    pub fn check(self, text: &str) -> Result<String, String> {
        let kept = Ok(text.to_owned());
        match self {
            Self::Text => kept,
            Self::Integer => match text.parse::<i64>() {
                Ok(_) => kept,
                Err(_) => Err("write a whole number".to_owned()),
            },
            Self::Count => match text.parse::<u32>() {
                Ok(_) => kept,
                Err(_) => Err(format!("write a whole number from 0 to {}", u32::MAX)),
            },
            Self::Positive => match text.parse::<u32>() {
                Ok(1..) => kept,
                _ => Err(format!("write a whole number from 1 to {}", u32::MAX)),
            },
            Self::Switch => {
                let yes = ["true", "yes", "t", "y"];
                let is_yes = yes.contains(&text.to_ascii_lowercase().as_str());
                Ok(is_yes.to_string())
            }
            Self::OnOff if ["true", "false"].contains(&text) => kept,
            Self::OnOff => Err("write true or false".to_owned()),
            Self::OneOf(words) if words.contains(&text) => kept,
            Self::OneOf(words) => {
                let shown = words.iter().map(|word| if word.is_empty() { "\"\"" } else { word });
                Err(format!("allowed are {}", shown.collect::<Vec<_>>().join(", ")))
            }
            Self::Millicores => values::millicores(text).and(kept),
            Self::Memory => values::memory(text).and(kept),
            Self::Resources => values::resources(text).and(kept),
            Self::Variables => values::variables(text).and(kept),
            Self::Volumes => values::volumes(text).and(kept),
            Self::Priority => match text.parse::<elastic::High>() {
                Ok(_) => kept,
                Err(error) => Err(error.to_string()),
            },
        }
    }

    /// Placeholder of the value in the help.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Text => "TEXT",
            Self::Integer | Self::Count | Self::Positive => "NUMBER",
            Self::Switch | Self::OnOff => "BOOLEAN",
            Self::OneOf(_) => "WORD",
            Self::Millicores => "MILLICORES",
            Self::Memory => "MEMORY",
            Self::Resources => "RESOURCES",
            Self::Variables => "VARIABLES",
            Self::Volumes => "VOLUMES",
            Self::Priority => "PRIORITY",
        }
    }
}
