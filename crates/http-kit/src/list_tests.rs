//! Lists of three things, asked in every way.

use super::*;

struct Thing(&'static str, u64, Option<u64>);

impl Row for Thing {
    const FIELDS: &'static [(&'static str, Type)] = &[
        ("name", Type::Text),
        ("gpus", Type::Number),
        ("at", Type::Time),
        ("big", Type::Flag),
        ("parts", Type::Text),
    ];
    const SEARCHED: &'static [&'static str] = &["name"];
    fn field(&self, name: &str, _: Instant) -> Scalar<'_> {
        match name {
            "name" => Scalar::text(self.0),
            "gpus" => Scalar::Number(self.1),
            "big" => Scalar::Flag(self.1 > 1000),
            "parts" => Scalar::Texts(vec![self.0[..1].into(), self.0[1..].into()]),
            _ => self.2.map_or(Scalar::Absent, Scalar::Time),
        }
    }
}

/// 2026-01-01T00:00:00Z.
const NEW_YEAR: u64 = 1_767_225_600_000;

fn run(query: &str) -> Result<(Vec<&'static str>, Option<u64>), String> {
    let things = [
        Thing("a1", 500, Some(NEW_YEAR)),
        Thing("b1", 2000, None),
        Thing("a2", 1000, Some(NEW_YEAR + 1)),
    ];
    let pairs = query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
        let (name, value) = pair.split_once('=').unwrap();
        (name.to_owned(), value.to_owned())
    });
    let run = || {
        let query = ListQuery::parse(&pairs.collect::<Vec<_>>())?;
        let names = query.matching(things.iter(), Instant(0))?.into_iter().map(|t| t.0);
        Ok(query.page(names.collect()))
    };
    run().map_err(|error: ApiError| error.message())
}

#[test]
fn every_operator_selects() {
    for (filter, want) in [
        ("name==a1", vec!["a1"]),
        ("name!=a1", vec!["b1", "a2"]),
        ("gpus<=1", vec!["a1", "a2"]),
        ("gpus>=0.501", vec!["b1", "a2"]),
        ("name=@1", vec!["a1", "b1"]),
        ("name!@1", vec!["a2"]),
        ("name=^a", vec!["a1", "a2"]),
        ("name=$1", vec!["a1", "b1"]),
        ("at<=2026-01-01", vec!["a1"]),
        ("at>=2026-01-01T00:00:00.001Z", vec!["a2"]),
        ("big==true", vec!["b1"]),
        ("name=^a,gpus==0.5", vec!["a1"]),
        ("name==", vec![]),
        ("name==a1|b1", vec!["a1", "b1"]),
        ("name!=a1|b1", vec!["a2"]),
        ("parts==a", vec!["a1", "a2"]),
        ("parts==b|c", vec!["b1"]),
        ("parts!=1", vec!["a2"]),
        ("parts!@1", vec!["a2"]),
        ("parts=^2", vec!["a2"]),
    ] {
        assert_eq!(run(&format!("filterBy={filter}")).unwrap().0, want, "{filter}");
    }
}

#[test]
fn pages_follow_each_other() {
    assert_eq!(run("limit=2").unwrap(), (vec!["a1", "b1"], Some(2)));
    assert_eq!(run("limit=2&offset=2").unwrap(), (vec!["a2"], None));
    assert_eq!(run("limit=3").unwrap().1, None);
    assert_eq!(run("offset=18446744073709551615").unwrap(), (vec![], None));
}

#[test]
fn rows_are_sorted_and_searched() {
    assert_eq!(run("sortBy=name").unwrap().0, ["a1", "a2", "b1"]);
    assert_eq!(run("sortBy=gpus&sortOrder=desc").unwrap().0, ["b1", "a2", "a1"]);
    assert_eq!(run("sortBy=at").unwrap().0, ["b1", "a1", "a2"]);
    assert_eq!(run("search=A").unwrap().0, ["a1", "a2"]);
}

#[test]
fn wrong_queries_say_what_is_allowed() {
    for (query, want) in [
        ("limit=0", "limit: `0` is not allowed; write 1 to 500"),
        ("limit=501", "limit: `501` is not allowed; write 1 to 500"),
        ("offset=-1", "offset: `-1` is not allowed; write a whole number, 0 or more"),
        ("sortOrder=up", "sortOrder: `up` is not allowed; write asc or desc"),
        ("sortBy=nmae", "sortBy: unknown field `nmae`; did you mean `name`? allowed are name,"),
        ("filterBy=size==1", "filterBy: unknown field `size`; allowed are name, gpus, at"),
        ("filterBy=name=a1", "filterBy: `name=a1` is not a condition; write field, operator"),
        ("filterBy=name<3", "filterBy: `name<3` is not a condition"),
        ("filterBy===3", "filterBy: `==3` is not a condition"),
        ("filterBy=gpus==x", "filterBy: `x` for gpus is not a number such as 0.5 or 2"),
        ("filterBy=gpus=@1", "filterBy: gpus is not text; use == != <= or >= with it"),
        ("filterBy=at>=soon", "filterBy: `soon` for at is not a time such as"),
        ("filterBy=big==1", "filterBy: `1` for big is not true or false"),
        ("filterby=name==a", "unknown parameter `filterby`; did you mean `filterBy`?"),
        ("deleted=1", "deleted: `1` is not allowed; write true or false"),
    ] {
        let got = run(query).unwrap_err();
        assert!(got.starts_with(want), "{query}\n got: {got}\nwant: {want}");
    }
    let many = ["name!=x"; 11].join(",");
    assert!(run(&format!("filterBy={many}")).unwrap_err().contains("more than 10 conditions"));
}

#[test]
fn a_page_of_rows_in_no_order_is_cut_from_all_in_order() {
    let names = ["c", "a", "d", "b", "a", "c"].into_iter().zip(0..);
    let things: Vec<Thing> = names.map(|(name, place)| Thing(name, place, None)).collect();
    for sorted in ["", "&sortBy=name", "&sortBy=name&sortOrder=desc"] {
        for (offset, limit) in (0..8).flat_map(|offset| (1..8).map(move |limit| (offset, limit))) {
            let text = format!("offset={offset}&limit={limit}{sorted}");
            let pairs: Vec<_> = text.split('&').filter_map(|pair| pair.split_once('=')).collect();
            let owned: Vec<_> = pairs.iter().map(|(a, b)| (a.to_string(), b.to_string())).collect();
            let query = ListQuery::parse(&owned).unwrap();
            let want = query.page(query.matching(things.iter(), Instant(0)).unwrap());
            let got = query.page_of(things.iter().rev(), Instant(0), |thing| thing.1).unwrap();
            let plain = |(rows, next): (Vec<&Thing>, _)| {
                (rows.into_iter().map(|thing| (thing.0, thing.1)).collect::<Vec<_>>(), next)
            };
            assert_eq!(plain(got), plain(want), "{text}");
        }
    }
}
