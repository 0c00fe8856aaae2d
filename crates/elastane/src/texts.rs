//! Every error that ends a command of the operator or the start of the server, in one place, for
//! review. A change of wording is a change of `texts.txt`. Errors of requests are in
//! `cli_kit::exit`, those of the database in `store`.

use std::io;
use std::path::PathBuf;

use auth::{Error as AuthError, Sealed};
use engine::Error as EngineError;
use expect_test::expect_file;
use gpu::Error as GpuError;
use model::{MigError, UsageWindowError};
use sim::Error as SimError;
use store::BackupError;
use testkit::{assert_plain, texts};
use units::Error as AmountError;

use crate::settings::Error as SettingsError;

fn path() -> PathBuf {
    "/s/file".into()
}

fn gone() -> io::Error {
    io::Error::from(io::ErrorKind::NotFound)
}

fn text(text: &str) -> String {
    text.to_owned()
}

fn settings() -> [SettingsError; 4] {
    use SettingsError as E;
    [
        E::Read { path: path(), source: gone() },
        E::File { path: path(), line: 3, fault: text("FAULT") },
        E::Value { origin: text("--flag"), fault: text("FAULT") },
        E::NoHome,
    ]
}

fn gpus() -> [GpuError; 6] {
    use GpuError as E;
    [
        E::Driver(text("FAULT")),
        gpu::simulate_nodes("banana").unwrap_err(),
        gpu::simulate_gpus("99x16GiB", "node").unwrap_err(),
        gpu::simulate_nodes("1x0@=b").unwrap_err(),
        gpu::simulate_nodes("1x0,gpu=1").unwrap_err(),
        gpu::simulate_gpus("2x4", "node").unwrap_err(),
    ]
}

fn amounts() -> Vec<AmountError> {
    let gpus = ["x", "-1", "0.0001", "99999999999999999999", "1.5"];
    let gpus = gpus.map(|text| units::parse_gpu_millis(text).unwrap_err());
    gpus.into_iter().chain([units::parse_bytes("lots").unwrap_err()]).collect()
}

fn engine() -> Vec<EngineError> {
    use EngineError as E;
    let key: engine::RunKey = "00000000-0000-0000-0000-000000000001.2".parse().unwrap();
    vec![
        E::NoSuchRun(key),
        E::NotRunning(key),
        E::StillRunning(key),
        E::Invalid(text("WHAT IS WRONG")),
        E::NotHere { field: "storage.nfs", why: text("WHY, AND WHAT TO DO") },
        E::NotKept(text("WHY, AND WHAT TO DO")),
        E::Io { what: text("start the run"), source: gone() },
        E::Unsupported("process"),
    ]
}

fn backups() -> Vec<BackupError> {
    use BackupError as E;
    let database = || text("DATABASE");
    vec![
        E::Store(store::Error::Full { database: database() }),
        E::File { what: "read", cause: gone() },
        E::Nothing { database: database() },
        E::Beside { cause: gone() },
        E::Damaged { line: 3, fault: text("FAULT") },
        E::Newer { found: 9, known: 8, program: text("0.9.0") },
        E::NotEmpty { database: database() },
    ]
}

fn auth() -> Vec<AuthError> {
    use AuthError as E;
    vec![
        E::WrongCredentials,
        E::UnknownGrant(text("x")),
        E::Access { what: "read", path: path(), source: gone() },
        E::JobIdentity { what: text("FAULT") },
        E::Exposed { path: path() },
        E::BadKey { path: path() },
        E::BadVaultKey { path: path() },
        E::Sealing,
        E::NoRandomness(text("FAULT")),
        E::Hashing,
        E::UnknownPrincipal,
        E::Store(store::Error::Full { database: text("DATABASE") }),
    ]
}

#[test]
fn every_error_of_the_operator() {
    let settings =
        texts!(SettingsError { Read, File, Value, NoHome }, settings(), ToString::to_string,);
    let gpus = texts!(
        GpuError { Driver, Notation, OutOfRange, Labels, Host, Size },
        gpus(),
        ToString::to_string,
    );
    let amounts = texts!(
        AmountError { NotANumber, Negative, TooFine, TooLarge, MixedGpu, NotASize },
        amounts(),
        ToString::to_string,
    );
    let mig = texts!(
        MigError { NotAProfile, TooManyProfiles, NoInstance },
        [MigError::NotAProfile(text("x")), MigError::TooManyProfiles, MigError::NoInstance],
        ToString::to_string,
    );
    let usage = texts!(
        UsageWindowError { Length, HalfLife },
        [UsageWindowError::Length, UsageWindowError::HalfLife],
        ToString::to_string,
    );
    let message = || text("WHAT IS WRONG");
    let simulation = [
        SimError::Scenario { line: 2, column: 3, message: message() },
        SimError::Trace { line: 2, message: message() },
        SimError::Write { message: message() },
    ];
    let simulation = texts!(SimError { Scenario, Trace, Write }, simulation, ToString::to_string);
    let all = [settings, gpus, amounts, mig, usage, simulation].join("\n");
    expect_file!["texts/command_line.txt"].assert_eq(&all);
    assert_plain(&all);
}

#[test]
fn every_error_of_a_start() {
    let engine = texts!(
        EngineError {
            NoSuchRun,
            NotRunning,
            StillRunning,
            Invalid,
            NotHere,
            NotKept,
            Io,
            Unsupported
        },
        engine(),
        |error: &EngineError| cli_kit::exit::chain(error),
    );
    let backups = texts!(
        BackupError { Store, File, Nothing, Beside, Damaged, Newer, NotEmpty },
        backups(),
        ToString::to_string,
    );
    let auth = texts!(
        AuthError {
            WrongCredentials,
            UnknownGrant,
            Access,
            JobIdentity,
            Exposed,
            BadKey,
            BadVaultKey,
            Sealing,
            NoRandomness,
            Hashing,
            UnknownPrincipal,
            Store,
        },
        auth(),
        |error: &AuthError| cli_kit::exit::chain(error),
    );
    let sealed = texts!(
        Sealed { OtherKey, Damaged },
        [Sealed::OtherKey { key: 1, path: path() }, Sealed::Damaged],
        ToString::to_string,
    );
    let all = [engine, backups, auth, sealed].join("\n");
    expect_file!["texts/start.txt"].assert_eq(&all);
    assert_plain(&all);
}
