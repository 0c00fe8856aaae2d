//! Principals: the administrators that come with an installation, and the stored ones.

use std::fmt;
use std::str::FromStr;

use crate::Error;

/// A user or service account that can authenticate.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Principal {
    /// The user of this machine whose state directory it is; proves it with the token in there.
    Local,
    /// The application every installation has.
    Admin,
    /// A person.
    User(String),
    /// A program.
    ServiceAccount(String),
    /// A key by which a program speaks for a person.
    AccessKey(String),
}

impl Principal {
    /// True if it administers the installation without any rule saying so.
    #[must_use]
    pub const fn is_built_in(&self) -> bool {
        matches!(self, Self::Local | Self::Admin)
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local => f.write_str("local"),
            Self::Admin => f.write_str("admin"),
            Self::User(id) => write!(f, "user/{id}"),
            Self::ServiceAccount(id) => write!(f, "service-account/{id}"),
            Self::AccessKey(id) => write!(f, "access-key/{id}"),
        }
    }
}

impl FromStr for Principal {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let (kind, id) = text.split_once('/').unwrap_or((text, ""));
        match (kind, id) {
            ("local", "") => Ok(Self::Local),
            ("admin", "") => Ok(Self::Admin),
            (_, "") => Err(Error::UnknownPrincipal),
            ("user", id) => Ok(Self::User(id.to_owned())),
            ("service-account", id) => Ok(Self::ServiceAccount(id.to_owned())),
            ("access-key", id) => Ok(Self::AccessKey(id.to_owned())),
            _ => Err(Error::UnknownPrincipal),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn principals_survive_being_written() {
        use Principal::{AccessKey, Admin, Local, ServiceAccount, User};
        let id = || "7".to_owned();
        for principal in [Local, Admin, User(id()), ServiceAccount(id()), AccessKey(id())] {
            assert_eq!(principal.to_string().parse::<Principal>().unwrap(), principal);
        }
        for text in ["", "user", "user/", "root", "local/1", "admin/x", "x/1"] {
            assert!(text.parse::<Principal>().is_err(), "{text}");
        }
    }
}
