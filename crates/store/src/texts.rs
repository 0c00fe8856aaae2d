//! Every error of the database in one place, for review. A change of wording is a change of
//! `texts.txt`.

use std::io;

use expect_test::expect_file;
use testkit::{assert_plain, texts};

use crate::Error;

fn errors() -> Vec<Error> {
    use Error as E;
    let (database, detail) = (|| "DATABASE".to_owned(), || "DETAIL".to_owned());
    vec![
        E::Locked { dir: "/s".into(), pid: "7".to_owned() },
        E::InUse { database: database(), holder: "HOLDER".to_owned() },
        E::Overtaken { database: database() },
        E::Foreign { database: database(), detail: detail() },
        E::Unreachable { database: database(), cause: "CAUSE".to_owned() },
        E::InDoubt { database: database(), cause: "CAUSE".to_owned() },
        E::ReadOnly { database: database(), detail: detail() },
        E::Access { what: "open", path: "/s".into(), cause: io::ErrorKind::NotFound.into() },
        E::Damaged { database: database(), detail: detail() },
        E::Newer { database: database(), found: 9, known: 8, program: "PROGRAM".to_owned() },
        E::NewerDocument {
            database: database(),
            what: "WHAT".to_owned(),
            found: 9,
            known: 8,
            program: "PROGRAM".to_owned(),
        },
        E::Full { database: database() },
        E::Row { row: "workload 7".to_owned(), value: "x".to_owned() },
        E::Database {
            database: database(),
            what: "write",
            cause: sqlx::Error::PoolTimedOut.to_string(),
        },
    ]
}

#[test]
fn every_error_of_the_database() {
    let all = texts!(
        Error {
            Locked,
            InUse,
            Overtaken,
            Foreign,
            Unreachable,
            InDoubt,
            ReadOnly,
            Access,
            Damaged,
            Newer,
            NewerDocument,
            Full,
            Row,
            Database,
        },
        errors(),
        ToString::to_string,
    );
    expect_file!["texts.txt"].assert_eq(&all);
    assert_plain(&all);
}
