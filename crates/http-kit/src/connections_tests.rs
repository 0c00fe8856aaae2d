//! Admission of connections, and the closing of idle ones.

use super::*;

fn connections(most: usize) -> Arc<Connections> {
    Connections::new(Limits { connections: most, ..Limits::default() })
}

fn address(text: &str) -> Client {
    Client::Address(text.parse().unwrap())
}

fn is_there(place: &ConnectionPermit) -> bool {
    place.0.all.table().all.contains_key(&place.0.number)
}

/// A request that is being answered.
fn asks(place: &ConnectionPermit) -> Busy {
    place.begin(Body::empty()).0
}

/// A request whose body does not come.
fn sends_slowly(place: &ConnectionPermit) -> (Busy, Arriving) {
    let never = futures_util::stream::pending::<Result<axum::body::Bytes, std::io::Error>>();
    place.begin(Body::from_stream(never))
}

/// Takes at most so many places for requests that are being answered, and returns how many.
fn take(
    all: &Arc<Connections>,
    kept: &mut Vec<(Busy, ConnectionPermit)>,
    client: Client,
    most: usize,
) -> usize {
    let taken = (0..most).map_while(|_| {
        let place = all.admit_client(client, false).ok()?;
        kept.push((asks(&place), place));
        Some(())
    });
    taken.count()
}

#[test]
fn silent_ones_make_room_the_oldest_first_and_those_that_asked_last() {
    let all = connections(16);
    let admit = || all.admit_client(Client::Account(1000), false).expect("room");
    let [asked, busy, silent, other] = [admit(), admit(), admit(), admit()];
    drop(asks(&asked));
    let answering = asks(&busy);
    let (fifth, sixth) = (admit(), admit());
    assert!(!is_there(&silent) && !is_there(&other), "they never asked");
    assert!(is_there(&asked) && is_there(&busy));
    let (_a, _b) = (asks(&fifth), asks(&sixth));
    let seventh = admit();
    assert!(!is_there(&asked), "it asked, and is silent now");
    let _c = asks(&seventh);
    let full = all.admit_client(Client::Account(1000), false).unwrap_err();
    assert_eq!(full, Full::Own(4), "all others are answered");
    drop(answering);
    admit();
    assert!(!is_there(&busy));
}

#[test]
fn a_body_that_has_no_end_is_idle_and_makes_room_before_what_asked() {
    let all = connections(16);
    let admit = || all.admit_client(Client::Account(1000), false).expect("room");
    let [asked, slow, slower, answered] = [admit(), admit(), admit(), admit()];
    drop(asks(&asked));
    let (_slow, _slower) = (sends_slowly(&slow), sends_slowly(&slower));
    let _answered = asks(&answered);
    let (_fifth, _sixth) = (admit(), admit());
    assert!(!is_there(&slow) && !is_there(&slower), "their first requests are not whole");
    assert!(is_there(&asked) && is_there(&answered));
}

#[test]
fn what_went_over_to_another_protocol_stays() {
    let all = connections(1);
    let client = Client::Account(1000);
    let place = all.admit_client(client, false).expect("room");
    asks(&place).goes_over();
    assert!(all.admit_client(client, false).is_err());
    drop(place);
    assert!(all.admit_client(client, false).is_ok());
}

#[test]
fn one_client_takes_a_quarter_and_the_last_places_are_for_who_has_none() {
    let all = connections(64);
    let mut kept = Vec::new();
    let mut take = |client, most| take(&all, &mut kept, client, most);
    assert_eq!(take(Client::Account(1000), 64), 16, "also on this machine");
    assert_eq!(take(address("192.0.2.1"), 64), 16);
    assert_eq!(take(Client::Account(1001), 64) + take(Client::Account(1002), 64), 24);
    // An account that has none gets one of the eight that are reserved, and no second; no address
    // does, of which anybody has as many as wanted.
    assert_eq!(take(Client::Account(0), 64), 1);
    assert_eq!(take(address("192.0.2.2"), 64), 0);
    let proxy = all.admit_client(address("10.9.9.9"), true).expect("a proxy connects for many");
    let second = all.admit_client(address("10.9.9.9"), true).expect("also again");
    drop((asks(&proxy), asks(&second)));
}

#[test]
fn a_flood_of_one_client_ends_connections_of_that_client_only() {
    let all = connections(64);
    let friend = all.admit_client(Client::Account(0), false).expect("room");
    let flood: Vec<_> =
        (0..500).filter_map(|_| all.admit_client(Client::Account(1000), false).ok()).collect();
    assert_eq!(flood.iter().filter(|place| is_there(place)).count(), 16);
    assert!(is_there(&friend));
}

#[test]
fn a_caller_takes_an_eighth_whatever_lasts_and_is_told() {
    let all = connections(64);
    let admit = || all.admit_client(Client::Account(1000), false).expect("room");
    let mut kept = Vec::new();
    for _ in 0..8 {
        let place = admit();
        let busy = asks(&place);
        place.belongs_to("ada").unwrap();
        place.belongs_to("ada").unwrap();
        kept.push((busy, place));
    }
    let (next, other) = (admit(), admit());
    let _asked = (asks(&next), asks(&other));
    let refused = next.belongs_to("ada").unwrap_err();
    assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(
        refused.message(),
        "ada has 8 connections open, the most allowed; close some, or try again in 5 s"
    );
    other.belongs_to("ben").unwrap();
    // A connection between two requests makes room; one that ends or changes its caller is no
    // longer counted.
    let (busy, idle) = kept.pop().unwrap();
    drop(busy);
    next.belongs_to("ada").unwrap();
    assert!(!is_there(&idle));
    assert!(other.belongs_to("ada").is_err());
    next.belongs_to("ben").unwrap();
    other.belongs_to("ada").unwrap();
    drop(kept);
    drop(next);
    drop(other);
    assert!(all.table().by_caller.is_empty() && all.table().by_client.is_empty());
}

#[test]
fn few_files_mean_few_connections() {
    assert_eq!(Limits::for_files(1024).connections, 512);
    assert_eq!(Limits::for_files(1 << 20).connections, CONNECTIONS_MAX);
}

/// A connection of a caller that sends a large body.
fn sends(
    all: &Arc<Connections>,
    caller: &str,
    bytes: usize,
) -> Result<ConnectionPermit, StatusCode> {
    let permit = all.admit_client(Client::Account(1000), false).expect("room");
    permit.belongs_to(caller).unwrap();
    permit.takes_large_body(bytes).map_err(|refused| refused.status).map(|()| permit)
}

#[test]
fn large_bodies_of_one_caller_leave_room_for_those_of_others() {
    let all = connections(256);
    let full = sends(&all, "greedy", OWN_BODIES_BYTES_MAX).unwrap();
    assert_eq!(
        full.takes_large_body(OWN_BODIES_BYTES_MAX).map_err(|no| no.status),
        Ok(()),
        "grows"
    );
    let request = asks(&full);
    assert_eq!(sends(&all, "greedy", 1).unwrap_err(), StatusCode::TOO_MANY_REQUESTS);
    assert!(sends(&all, "other", 1).is_ok());
    drop(request);
    assert!(sends(&all, "greedy", 1).is_ok(), "answered ones no longer count");
}

#[test]
fn large_bodies_of_many_callers_leave_room_for_one_that_has_none() {
    let all = connections(256);
    let callers = LARGE_BODIES_BYTES_MAX / OWN_BODIES_BYTES_MAX;
    let kept: Vec<_> = (0..callers)
        .map(|n| sends(&all, &format!("c{n}"), OWN_BODIES_BYTES_MAX - 1).unwrap())
        .collect();
    let refused = sends(&all, "c0", callers + 1).unwrap_err();
    assert_eq!(refused, StatusCode::TOO_MANY_REQUESTS, "all together have enough");
    let new = sends(&all, "new", LARGE_BODIES_BYTES_RESERVED).unwrap();
    assert_eq!(sends(&all, "newer", 1 << 20).unwrap_err(), StatusCode::TOO_MANY_REQUESTS);
    drop((kept, new));
}

#[test]
fn a_further_caller_finds_a_place_however_many_tokens_its_account_has() {
    let all = connections(64);
    let admit = || all.admit_client(Client::Account(1000), false);
    let mut kept = Vec::new();
    let mut keep = |caller: &str| {
        let place = admit().expect("room");
        let busy = asks(&place);
        let result = place.belongs_to(caller);
        result.map(|()| kept.push((busy, place)))
    };
    for caller in ["ada", "ben"] {
        while keep(caller).is_ok() {}
    }
    // Of 16 places two are left, which no caller keeps beside another.
    let refused = keep("ben").unwrap_err();
    assert_eq!(
        refused.message(),
        "this account or address has 14 connections open, the most allowed; close some, or try \
         again in 5 s"
    );
    keep("admin").unwrap();
    drop(kept);
    assert!(all.table().kept.is_empty());
}

#[test]
fn guests_of_a_workload_take_a_quarter_from_wherever_they_come_and_all_guests_half() {
    let all = connections(64);
    let mut kept = Vec::new();
    let mut keep = |number: usize, workload: &str| {
        let client = address(&format!("192.0.2.{number}"));
        let place = all.admit_client(client, false).expect("room");
        let busy = asks(&place);
        let result = place.belongs_to_guests_of(workload);
        result.map(|()| kept.push((busy, place)))
    };
    let mut take = |workload: &str| (0..40).filter(|it| keep(*it, workload).is_ok()).count();
    assert_eq!([take("a"), take("b"), take("c")], [16, 16, 0]);
    let user = all.admit_client(address("192.0.2.77"), false).expect("room");
    user.belongs_to("ada").unwrap();
}

#[test]
fn containers_take_a_quarter_by_network_and_half_together() {
    let all = connections(64);
    let mut kept = Vec::new();
    let network = |number| Client::Containers([172, number, 0, 0].into());
    let mut take = |client| take(&all, &mut kept, client, 64);
    assert_eq!([17, 18, 19].map(|number| take(network(number))), [16, 16, 0]);
    assert_eq!(all.admit_client(network(20), false).unwrap_err(), Full::Containers(32));
    assert_eq!(take(address("192.0.2.1")), 16);
}
