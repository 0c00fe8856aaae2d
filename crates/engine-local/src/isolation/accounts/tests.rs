//! Tests of Unix accounts: which one a run gets, and who keeps it.

use super::*;

fn accounts(folder: &tempfile::TempDir, policy: AccountPolicy) -> Accounts {
    Accounts::open(policy, folder.path()).unwrap()
}

#[test]
fn an_account_that_was_there_is_waited_for_and_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let ann = Account { uid: 1234, name: "ann".into(), ..Account::private(1234) };
    let all = accounts(&folder, AccountPolicy::default());
    assert_eq!(all.person("ann", None).unwrap(), None, "it was never there");
    assert_eq!(all.person("ann", Some(ann.clone())).unwrap(), Some(ann));
    let later = accounts(&folder, AccountPolicy::default());
    let Error::Io { source, .. } = later.person("ann", None).unwrap_err() else { panic!() };
    assert!(source.to_string().contains("`getent passwd ann` must show"), "{source}");
    assert_eq!(later.person("daemon", Some(Account::private(2))).unwrap(), None, "no person");
}

#[test]
fn an_id_that_no_account_of_a_submitter_has_is_known_before_it_has_one() {
    let folder = tempfile::tempdir().unwrap();
    let table = [("root@example.org".to_owned(), "root".to_owned())].into();
    let domains = vec!["example.com".to_owned()];
    let all = accounts(&folder, AccountPolicy { table, domains, ..AccountPolicy::default() });
    for (submitter, uid, never) in [
        ("bob@example.org", 0, true),
        ("bob@example.org", 1000, true),
        ("bob@example.org", 1_900_000_007, false),
        ("ann@example.com", 0, true),
        ("ann@example.com", 1000, false),
        ("root@example.org", 0, false),
    ] {
        assert_eq!(all.never_has(submitter, uid), never, "{submitter} {uid}");
    }
}

#[test]
fn ids_of_a_backup_never_take_those_of_the_machine() {
    let folder = tempfile::tempdir().unwrap();
    let saved = r#"{"next": 1900000009, "ids": {"ann": 1900000000, "bob": 1900000001}}"#;
    restore_private_ids(folder.path(), saved).unwrap();
    let ids = |who: &str| accounts(&folder, AccountPolicy::default()).of(who, "").unwrap().uid;
    assert_eq!((ids("ann"), ids("bob")), (1_900_000_000, 1_900_000_001));
    assert_eq!(ids("cy"), 1_900_000_002, "the next that is free");
    let other = r#"{"next": 5, "ids": {"ann": 7, "dan": 1900000002, "eve": 1900000004}}"#;
    restore_private_ids(folder.path(), other).unwrap();
    assert_eq!((ids("ann"), ids("eve")), (1_900_000_000, 1_900_000_004));
    assert_eq!(ids("dan"), 1_900_000_003, "it is cy's here");
    assert!(restore_private_ids(folder.path(), "[]").is_err());
}

#[test]
fn a_backup_brings_only_private_ids_and_each_once() {
    let folder = tempfile::tempdir().unwrap();
    let saved = r#"{"next": 4000000000, "ids": {"ann": 0, "bob": 1900000001, "cy": 1900000001}}"#;
    restore_private_ids(folder.path(), saved).unwrap();
    let ids = |who: &str| accounts(&folder, AccountPolicy::default()).of(who, "").unwrap().uid;
    assert_eq!((ids("bob"), ids("ann"), ids("cy")), (1_900_000_001, 1_900_000_000, 1_900_000_002));
}

#[test]
fn a_private_id_is_one_submitters_for_good() {
    let folder = tempfile::tempdir().unwrap();
    let pool = 1_900_000_000..=1_900_000_001;
    let policy = AccountPolicy { pool, ..AccountPolicy::default() };
    let first = accounts(&folder, policy.clone());
    let (ann, bob) = (first.of("ann@x", "").unwrap(), first.of("bob@x", "").unwrap());
    assert_eq!((ann.uid, bob.uid, ann.gid), (1_900_000_000, 1_900_000_001, ann.uid));
    assert!(ann.groups.is_empty());
    let later = accounts(&folder, policy);
    assert_eq!(later.of("bob@x", "").unwrap(), bob, "after a restart");
    let said = later.of("ann@x", "user/2").unwrap_err().to_string();
    assert!(said.contains("--account-pool"), "{said}");
}

#[test]
fn a_look_gives_out_no_id_and_asks_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let policy = AccountPolicy {
        table: BTreeMap::from([("boss".to_owned(), "root".to_owned())]),
        domains: vec!["example.org".to_owned()],
        ..AccountPolicy::default()
    };
    let accounts = accounts(&folder, policy);
    for who in ["boss", "root@example.org", "ann@x"] {
        assert_eq!(accounts.known(who, "user/1"), None, "{who}");
    }
    assert!(!folder.path().join(FILE).exists());
    let ann = accounts.of("ann@x", "user/1").unwrap();
    assert_eq!(accounts.known("ann@x", "user/1"), Some(ann));
    assert_eq!(accounts.known("ann@x", "user/2"), None, "another of this name");
    let _busy = accounts.pool.lock().unwrap();
    assert_eq!(accounts.known("ann@x", "user/1"), None, "it does not wait");
}

#[test]
fn a_name_service_that_does_not_answer_is_waited_for_no_longer_than_allowed() {
    let said =
        |script: &str, most: Duration| output_within(Command::new("sh").args(["-c", script]), most);
    let late = said("exec sleep 600", Duration::from_millis(1)).unwrap_err();
    assert_eq!(late.kind(), ErrorKind::TimedOut, "{late}");
    let output = said("echo here; echo there >&2; exit 2", ANSWER_WAIT * 10).unwrap();
    assert_eq!((output.status.code(), &*output.stdout), (Some(2), &b"here\n"[..]));
    assert_eq!(output.stderr, b"there\n");
    let much = said("head -c 300000 /dev/zero", ANSWER_WAIT * 10).unwrap();
    assert_eq!(much.stdout.len(), 300_000, "more than a pipe holds");
}

#[test]
fn ids_of_others_are_passed_over_and_none_is_given_twice() {
    let folder = tempfile::tempdir().unwrap();
    let mut pool = Pool::open(folder.path().join(FILE)).unwrap();
    let mut id = |who: &str, taken: u32| pool.id_of(who, &(7..=9), &|id| id == taken);
    assert_eq!(id("ann", 7).unwrap(), 8);
    assert_eq!(id("bob", 8).unwrap(), 9);
    assert!(id("cat", 0).is_err(), "7 is not looked at again");
}

#[test]
fn the_system_has_its_accounts_for_itself_unless_the_table_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let policy = AccountPolicy {
        table: BTreeMap::from([("boss".to_owned(), "root".to_owned())]),
        domains: vec!["*".to_owned()],
        ..AccountPolicy::default()
    };
    let accounts = accounts(&folder, policy);
    let uid = |who: &str| accounts.of(who, "").unwrap().uid;
    assert_eq!(uid("boss"), 0);
    for who in ["root@x", "daemon@x", "nobody@x", "0@x", "root", "-r@x", "a:b@x"] {
        assert!(AccountPolicy::POOL_DEFAULT.contains(&uid(who)), "{who}");
    }
}

#[test]
fn only_addresses_of_trusted_domains_name_an_account() {
    let folder = tempfile::tempdir().unwrap();
    let domains = vec!["Example.org".to_owned()];
    let accounts = accounts(&folder, AccountPolicy { domains, ..AccountPolicy::default() });
    assert_eq!(accounts.named("ann@example.org"), Some("ann"));
    for other in ["ann@evil.org", "ann", "ann@example.org@evil.org", "x@example.org.evil.org"] {
        assert_eq!(accounts.named(other), None, "{other}");
    }
}

#[test]
fn a_missing_account_of_the_table_is_no_private_id() {
    let folder = tempfile::tempdir().unwrap();
    let table = BTreeMap::from([("ann".to_owned(), "no-such-account".to_owned())]);
    let accounts = accounts(&folder, AccountPolicy { table, ..AccountPolicy::default() });
    let said = accounts.of("ann", "").unwrap_err().to_string();
    assert!(said.contains("`no-such-account`"), "{said}");
}

#[test]
fn the_files_are_read_where_there_is_no_program() {
    let text = "root:x:0:\nlab:x:70:bob,ann\nsudo:x:27:root\nannex:x:9:anna\n";
    assert_eq!(groups_in(text, "ann"), [70]);
    let line = "ann:x:1001:1002:Ann,,,:/home/ann:/bin/zsh\n";
    let ann = parse_passwd(line).unwrap();
    assert_eq!((ann.uid, ann.gid, ann.name.as_str()), (1001, 1002, "ann"));
    assert!(parse_passwd("ann:x:-1:1:::").is_none());
}
