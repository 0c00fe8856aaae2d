//! Tables of the settings for the documentation. Owns: their columns.

use super::{ALL, LOGIN_PROVIDER, Setting};

const HEADER: &str = "| flag | environment | key in the file | default | meaning |\n\
                      |---|---|---|---|---|\n";

/// A document with such a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Document {
    /// Document of all other settings.
    Configuration,
    /// Document of the settings of the login provider.
    LoginProvider,
}

impl Document {
    /// All documents.
    pub(crate) const ALL: [Self; 2] = [Self::Configuration, Self::LoginProvider];

    fn has(self, setting: &Setting) -> bool {
        let is_login = setting.heading == Some(LOGIN_PROVIDER);
        is_login == (self == Self::LoginProvider)
    }

    /// The table, in Markdown.
    pub(crate) fn table(self) -> String {
        let settings = ALL.iter().filter(|setting| self.has(setting));
        settings.fold(HEADER.to_owned(), |table, setting| table + &row(setting))
    }
}

fn row(setting: &Setting) -> String {
    let code = |text: &str| format!("`{text}`");
    let flag = match setting.value {
        Some(value) => code(&format!("--{} {value}", setting.flag)),
        None => code(&format!("--{}", setting.flag)),
    };
    let variable = setting.variable().as_deref().map(code).unwrap_or_default();
    let key = setting.file_key().map(code).unwrap_or_default();
    let default = match (setting.default, setting.unset) {
        ("", "") => "none".to_owned(),
        ("", unset) => unset.to_owned(),
        (switch, _) if setting.is_switch() => switch.to_owned(),
        (default, _) => code(default),
    };
    format!("| {flag} | {variable} | {key} | {default} | {} |\n", setting.meaning)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use expect_test::expect_file;
    use spec::{AtLimit, UserLimit};

    use super::*;

    /// A document whose table is replaced by that of the current list.
    fn with_table(text: &str, document: Document) -> String {
        let header = HEADER.lines().next().expect("two lines");
        let (before, rest) = text.split_once(header).expect("a table of settings");
        let (_, after) = rest.split_once("\n\n").expect("text after the table");
        format!("{before}{}\n{after}", document.table())
    }

    #[test]
    fn the_documentation_has_the_table_of_the_list() {
        for (document, path) in [
            (Document::Configuration, "reference/config.md"),
            (Document::LoginProvider, "guides/login-provider.md"),
        ] {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(path);
            let text = fs::read_to_string(&path).unwrap();
            expect_file![&path].assert_eq(&with_table(&text, document));
        }
    }

    #[test]
    fn the_documentation_has_the_table_of_limits() {
        let header = "| limit | default | what is limited | at the limit | what helps |";
        let row = |limit: &UserLimit| {
            let end = match limit.at_limit() {
                AtLimit::RefusesField(_) => "400",
                AtLimit::Refuses => "409",
                AtLimit::DropsOldest => "the oldest go",
            };
            let default = limit.unit().text(limit.default());
            let (name, what, relief) = (limit.name(), limit.what(), limit.relief());
            format!("| `{name}` | {default} | {what} | {end} | {relief} |\n")
        };
        let rows: String = UserLimit::ALL.iter().map(row).collect();
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/limits.md");
        let text = fs::read_to_string(&path).unwrap();
        let (before, rest) = text.split_once(header).expect("a table of limits");
        let (_, after) = rest.split_once("\n\n").expect("text after the table");
        let text = format!("{before}{header}\n|---|---|---|---|---|\n{rows}\n{after}");
        expect_file![&path].assert_eq(&text);
    }

    #[test]
    fn each_setting_is_in_one_document_and_says_what_it_means() {
        for setting in ALL {
            let documents = Document::ALL.into_iter().filter(|document| document.has(setting));
            assert_eq!(documents.count(), 1, "{}", setting.key);
            let texts = [setting.help(), setting.meaning];
            assert!(texts.iter().all(|text| !text.is_empty()), "{}", setting.key);
            let cells = format!("{}{}", setting.meaning, setting.unset);
            assert!(!cells.contains(['|', '\n']), "{}", setting.key);
            assert_eq!(setting.is_switch(), setting.default == "false", "{}", setting.key);
        }
    }
}
