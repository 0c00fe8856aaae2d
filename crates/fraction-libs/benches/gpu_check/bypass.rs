//! Attempts to get around a limit that need no server, and whether each does what
//! docs/guides/fractions.md says of it.

use std::fs;

use crate::{Check, Failed, NAMES, Outcome, Passed, Result, Untried, Way, output};

impl Check {
    /// Requests more than the limit in a program that finds functions by `how`. Returns `true` if
    /// the request is refused.
    fn refuses(&self, name: &str, way: Way, how: &str, without: &[&str]) -> Result<bool> {
        let pages = self.pages(name, self.half())?;
        let mut command = self.command(&self.folder.path().join("probe"), way, &pages)?;
        for variable in without {
            command.env_remove(variable);
        }
        let more = self.half() / crate::MIB + 64;
        let printed = output(command.args([how, "init", "retain", &format!("alloc:{more}M")]))?;
        match printed.lines().last() {
            Some("alloc 2") => Ok(true),
            Some("alloc 0") => Ok(false),
            _ => Err(printed.replace('\n', ", ").into()),
        }
    }

    fn expect(&self, refused: Result<bool>, expected: bool) -> Result<Outcome> {
        let says = |refused| if refused { "refused" } else { "NOT limited" };
        let refused = refused?;
        let detail = format!("{}, as documented", says(refused));
        let other = || format!("{}, documented is: {}", says(refused), says(expected));
        Ok(if refused == expected { Passed(detail) } else { Failed(other()) })
    }

    pub(crate) fn without_preload(&self) -> Result<Outcome> {
        self.expect(self.refuses("unloaded", Way::Proxies, "dlsym", &["LD_PRELOAD"]), true)
    }

    pub(crate) fn without_pages(&self) -> Result<Outcome> {
        let refused = self.refuses("no-pages", Way::Preload, "dlsym", &["ELASTANE_FRACTION"]);
        // Not even a context is there, which is another error.
        match refused {
            Err(why) if why.to_string().contains("retain 2") => self.expect(Ok(true), true),
            refused => self.expect(refused, true),
        }
    }

    /// Without any variable a program finds the driver itself.
    pub(crate) fn without_variables(&self) -> Result<Outcome> {
        if self.broker.is_some() {
            let why = "a program finds a simulated GPU by variables alone";
            return Ok(Untried(why.to_owned()));
        }
        let all = ["LD_PRELOAD", "LD_LIBRARY_PATH", "ELASTANE_FRACTION"];
        self.expect(self.refuses("cleared", Way::Proxies, "dlsym", &all), false)
    }

    /// The driver, loaded apart from other libraries of the program.
    pub(crate) fn apart(&self, how: &str, way: Way, refused: bool) -> Result<Outcome> {
        self.expect(self.refuses(how, way, how, &[]), refused)
    }

    pub(crate) fn own_copy(&self) -> Result<Outcome> {
        let pages = self.pages("copy", self.half())?;
        let [name, _] = NAMES;
        let [real, _] = &self.real;
        let copy = self.folder.path().join("copy");
        fs::create_dir_all(&copy)?;
        fs::copy(real, copy.join(name))?;
        let steps = format!("init retain second:{}", copy.join(name).display());
        let printed = self.probe(Way::Preload, &pages, &steps)?;
        let refused = printed.ends_with("second 801 801");
        if refused { self.expect(Ok(true), true) } else { Ok(Failed(printed)) }
    }
}
