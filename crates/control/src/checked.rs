//! Requests with a check. Owns: that a handle makes requests which are checked against the state
//! that they are applied to.

use std::sync::Arc;

use orchestrator::Error;
use view::View;

use crate::Handle;
use crate::requests::Check;

impl Handle {
    /// A handle whose requests are refused with the error of a check, made right before they are
    /// applied: nothing changes in between.
    #[must_use]
    pub fn checked(
        &self,
        check: impl Fn(&View) -> Result<(), Error> + Send + Sync + 'static,
    ) -> Self {
        let mut checked = self.clone();
        checked.check = Some(Arc::new(Check(Box::new(check))));
        checked
    }
}
