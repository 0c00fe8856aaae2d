//! The user of a container. Owns: reading it from the run and its image, and the errors that
//! follow. Pure. Does not know the names inside an image.

use engine::{Error, RunSpec, SecretPlace};

/// Root's number.
const ROOT: u32 = 0;
/// Read permission for others.
const READABLE: u32 = 0o004;

/// The user of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ContainerUser {
    /// Number of the user; `None` for a name, which has a meaning in the image only.
    uid: Option<u32>,
    gid: Option<u32>,
}

impl ContainerUser {
    /// The user of a run, whose image states `image_user` (`1000:1000`, `app`; empty for root).
    pub(crate) fn of(spec: &RunSpec, image_user: &str) -> Self {
        let asked = &spec.container.user;
        if asked.uid.is_some() {
            return Self { uid: asked.uid, gid: asked.gid };
        }
        let (user, group) = image_user.split_once(':').unwrap_or((image_user, ""));
        let uid = if ["", "root"].contains(&user) { Some(ROOT) } else { user.parse().ok() };
        Self { uid, gid: group.parse().ok() }
    }

    /// User and group of a file of its own.
    pub(crate) fn ids(self) -> (u32, u32) {
        (self.uid.unwrap_or(ROOT), self.gid.unwrap_or(ROOT))
    }

    /// True if only the image defines the number.
    pub(crate) const fn is_a_name(self) -> bool {
        self.uid.is_none()
    }

    /// Checks that the run may have this user.
    ///
    /// # Errors
    /// The user is not allowed, or could not read its own secrets; with advice.
    pub(crate) fn check(self, spec: &RunSpec) -> Result<(), Error> {
        let own = |secret: &engine::Secret| matches!(secret.to, SecretPlace::File { mode, .. } if mode & READABLE == 0);
        let why = match self.uid {
            Some(ROOT) if spec.container.security.not_root => {
                "runs as root, and security.runAsNonRoot forbids that"
            }
            None if spec.container.security.not_root => {
                "names its user, who may be root, and security.runAsNonRoot forbids that"
            }
            None if spec.secrets.iter().any(own) => {
                "names its user, and secret files are given to a number"
            }
            _ => return Ok(()),
        };
        Err(Error::Invalid(format!("image `{}` {why}; give a security.runAsUid", spec.image)))
    }
}

#[cfg(test)]
mod tests {
    use engine::{Secret, User};

    use super::*;
    use crate::container::tests::spec;

    #[test]
    fn what_the_run_asks_for_goes_before_what_the_image_says() {
        let ids = |user: User, image: &str| {
            let mut spec = spec();
            spec.container.user = user;
            ContainerUser::of(&spec, image).ids()
        };
        let asked = |uid, gid| User { uid: Some(uid), gid, ..User::default() };
        assert_eq!(ids(asked(7, Some(8)), "1000:1001"), (7, 8));
        assert_eq!(ids(asked(7, None), "1000:1001"), (7, 0));
        assert_eq!(ids(User::default(), "1000:1001"), (1000, 1001));
        assert_eq!(ids(User::default(), "1000"), (1000, 0));
    }

    #[test]
    fn who_must_not_be_root_is_a_number_that_is_not_0() {
        let mut spec = spec();
        spec.container.security.not_root = true;
        for (image, allowed) in [
            ("", false),
            ("root", false),
            ("0:7", false),
            ("00", false),
            ("app", false),
            ("7", true),
        ] {
            assert_eq!(ContainerUser::of(&spec, image).check(&spec).is_ok(), allowed, "`{image}`");
        }
        let why = ContainerUser::of(&spec, "app").check(&spec).expect_err("a name").to_string();
        assert!(why.contains("security.runAsUid"), "{why}");
    }

    #[test]
    fn secrets_of_a_user_without_a_number_are_for_everybody_or_refused() {
        let mut spec = spec();
        for (mode, allowed) in [(0o600, false), (0o444, true)] {
            let to = SecretPlace::File { path: "/key".into(), mode };
            spec.secrets = vec![Secret { to, value: "hush".to_owned() }];
            assert_eq!(ContainerUser::of(&spec, "app").check(&spec).is_ok(), allowed, "{mode:o}");
            assert!(ContainerUser::of(&spec, "7").check(&spec).is_ok());
        }
    }
}
