//! The messages of `git`. Owns: finding its progress and its fault in them, and what to do about a
//! fault. Pure.

use super::FetchError;
use crate::Repository;

/// Longest line that is shown, in characters.
const LINE_CHARS_MAX: usize = 300;
/// Most faults that are kept, and bytes of a line that is not complete.
const FAULTS_MAX: usize = 16;
const LINE_BYTES_MAX: usize = 4096;

const NOT_THERE: &str = "check its address, and that it may be read";
const NO_LOGIN: &str = "it wants a login: make a credential of type password and name it \
                        (`--git-sync source=…,secret=NAME`)";
const NO_SUCH: &str = "there is no such branch, tag or commit; `git ls-remote` and the address show \
                       which there are";
/// Text that identifies a fault, whether another attempt may succeed, and advice.
const KNOWN: [(&str, bool, &str); 17] = [
    ("Authentication failed", false, "check user and password of its credential"),
    ("could not read Username", false, NO_LOGIN),
    ("could not read Password", false, NO_LOGIN),
    ("returned error: 403", false, "its credential does not allow to read it"),
    ("find remote ref", false, NO_SUCH),
    ("not our ref", false, NO_SUCH),
    ("unadvertised object", false, NO_SUCH),
    ("invalid reference", false, NO_SUCH),
    ("is not a tree", false, NO_SUCH),
    ("support shallow", false, "its server gives no part of it"),
    ("unable to connect", true, "check its address, and that its server runs"),
    ("No space left on device", true, "make room on the machine of the server"),
    ("remote helper", false, "install all of git on the machine of the server"),
    ("transport '", false, "an address that begins with https://, http:// or git:// is needed"),
    ("not exported", false, NOT_THERE),
    ("not found", false, NOT_THERE),
    ("is this a git repository", false, NOT_THERE),
];

/// True if fetching everything may do where fetching little did not.
pub(super) fn all_may_help(why: &str, repository: &Repository) -> bool {
    why.contains("support shallow") || repository.revision.is_some() && why.contains(NO_SUCH)
}

/// State of the parser: the current line, the last line, the last progress, and the faults.
#[derive(Debug, Default)]
pub(super) struct StderrParser {
    line: Vec<u8>,
    last: String,
    progress: Option<String>,
    faults: Vec<String>,
}

impl StderrParser {
    pub(super) fn take(&mut self, bytes: &[u8]) {
        for byte in bytes {
            match byte {
                b'\r' | b'\n' => self.end_line(),
                _ if self.line.len() < LINE_BYTES_MAX => self.line.push(*byte),
                _ => {}
            }
        }
    }

    fn end_line(&mut self) {
        let line = String::from_utf8_lossy(&self.line).trim().to_owned();
        self.line.clear();
        if line.is_empty() {
            return;
        }
        // The reason is on the next line.
        if let Some(fault) = self.faults.last_mut().filter(|fault| fault.ends_with(':')) {
            fault.push(' ');
            fault.push_str(&line);
        }
        let fault = ["fatal: ", "error: "].iter().find_map(|word| line.strip_prefix(word));
        if let Some(fault) = fault.filter(|_| self.faults.len() < FAULTS_MAX) {
            self.faults.push(fault.to_owned());
        }
        // The server chooses the words of lines with `remote:`.
        if line.contains("% (") && !line.starts_with("remote:") {
            self.progress = Some(line.clone());
        }
        self.last = line;
    }

    /// Last progress line of `git`.
    pub(super) fn progress(&self) -> Option<String> {
        self.progress.as_deref().map(shown)
    }

    /// The fault and advice, without the errors that follow from it.
    pub(super) fn fault(mut self, repository: &Repository) -> FetchError {
        self.end_line();
        let known = self.faults.iter().find_map(|line| {
            let known = KNOWN.iter().find(|(sign, ..)| line.contains(sign));
            known.map(|(_, passes, what)| (line, *passes, *what))
        });
        let own = |line: &str| {
            let password = repository.login.as_ref().map(|login| login.password.as_str());
            let password = password.filter(|password| !password.is_empty());
            shown(&password.map_or(line.to_owned(), |hush| line.replace(hush, "***")))
        };
        match known {
            Some((line, true, what)) => FetchError::Passing(format!("{}; {what}", own(line))),
            Some((line, false, what)) => FetchError::Final(format!("{}; {what}", own(line))),
            None => FetchError::Passing(own(self.faults.first().unwrap_or(&self.last))),
        }
    }
}

/// A printable line: a server may have put anything into it.
fn shown(line: &str) -> String {
    line.chars().filter(|c| !c.is_control()).take(LINE_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Login;

    fn fault(text: &str) -> FetchError {
        let login = Login { user: "u".into(), password: "hush".into() };
        let repository = Repository {
            address: "http://x".into(),
            branch: None,
            revision: None,
            login: Some(login),
        };
        let mut said = StderrParser::default();
        said.take(text.as_bytes());
        said.fault(&repository)
    }

    #[test]
    fn the_fault_is_told_and_not_what_came_of_it() {
        let text = "remote: Counting objects: 1% (1/9)\rfatal: write error: No space left on \
                    device\nfatal: fetch-pack: invalid index-pack output\n";
        let FetchError::Passing(why) = fault(text) else { panic!("it may pass") };
        assert!(why.starts_with("write error: No space left on device; make room"), "{why}");
        let text = "fatal: unable to connect to h:\nh[0: 10.0.0.1]: errno=Connection refused\n\n";
        let FetchError::Passing(why) = fault(text) else { panic!("it may pass") };
        assert!(why.contains("errno=Connection refused; check its address"), "{why}");
        let text = "fatal: unable to access 'http://x/': Could not resolve host: x\n";
        let FetchError::Passing(why) = fault(text) else { panic!("it may pass") };
        assert_eq!(why, "unable to access 'http://x/': Could not resolve host: x");
    }

    #[test]
    fn no_password_and_no_control_characters_are_shown() {
        let FetchError::Final(why) = fault("fatal: remote error: \u{1b}[1m hush not found") else {
            panic!("trying again does not help")
        };
        assert!(why.contains("[1m *** not found") && !why.contains('\u{1b}'), "{why}");
        let FetchError::Passing(why) = fault("what else\n") else { panic!("it may pass") };
        assert_eq!(why, "what else");
    }

    #[test]
    fn progress_is_the_last_of_our_own_side() {
        let mut said = StderrParser::default();
        said.take(b"Receiving objects:  4% (1/25)\rReceiving objects: 50% (12/25), 3 MiB\r");
        said.take(b"remote: hush 100% (1/1)\nReceiving obj");
        assert_eq!(said.progress().as_deref(), Some("Receiving objects: 50% (12/25), 3 MiB"));
    }
}
