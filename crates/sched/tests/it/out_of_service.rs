//! GPUs that are broken, or used by foreign processes.

use testkit::World;

#[test]
fn what_ran_on_a_lost_gpu_goes_to_another_and_none_comes_back_before_it_does() {
    let mut w = World::new("n1:2 n2:1", "a:3");
    w.run("submit a/one; submit a/two; lose-gpu n1 0");
    assert_eq!((w.gpus().as_str(), w.cluster.capacity().gpu_millis), ("n1[. two] n2[one]", 2000));
    w.run("submit a/three");
    assert_eq!(w.waiting(), "three");
    assert!(
        w.why("three").contains("P111 1 GPU of 3 is out of service: GPU 0 of n1"),
        "{}",
        w.why("three")
    );
    w.run("return-gpu n1 0");
    assert_eq!(w.gpus(), "n1[three two] n2[one]");
}

#[test]
fn who_runs_beside_a_foreign_process_goes_on_and_nobody_else_comes() {
    let mut w = World::new("n1:2", "a:2");
    w.run("submit a/half -g 0.5; take-gpu n1 0; submit a/other -g 0.5; submit a/third -g 0.5");
    assert_eq!(w.gpus(), "n1[half:0.5 other:0.5+third:0.5]");
    assert_eq!((w.stopped().as_str(), w.cluster.capacity().gpu_millis), ("", 1000));
    w.run("delete other; delete half; delete third; submit a/two -g 2");
    assert_eq!(w.waiting(), "two");
    w.run("return-gpu n1 0");
    assert_eq!(w.gpus(), "n1[two two]");
}

#[test]
fn a_gang_moves_whole_and_an_elastic_one_makes_do_with_less() {
    let mut w = World::new("n1:2 n2:2", "a:4");
    w.run("submit a/gang --pods 2; submit a/flex -g 2 --elastic");
    assert_eq!(w.gpus(), "n1[gang gang] n2[flex flex]");
    w.run("lose-gpu n2 1");
    assert_eq!(w.gpus(), "n1[gang gang] n2[flex .]");
    w.run("lose-gpu n1 0");
    assert_eq!((w.gpus().as_str(), w.waiting().as_str()), ("n1[. gang] n2[flex .]", "gang"));
}

#[test]
fn nobody_is_stopped_for_the_room_on_a_gpu_that_is_out_of_service() {
    let mut w = World::new("n1:1 n2:1", "a:1 b:1");
    w.run("submit b/guest; submit b/other; take-gpu n1 0; submit a/own");
    assert_eq!(w.gpus(), "n1[guest] n2[own]");
    assert_eq!(w.waiting(), "other");
}

#[test]
fn what_was_kept_for_somebody_on_a_lost_gpu_is_found_elsewhere() {
    let mut w = World::new("n1:1 n2:1", "a:0 b:1");
    w.run("submit a/x; submit a/y; slow; submit b/own");
    let (kept, free) = if w.gpus().contains("n1[x!]") { ("n1", "n2") } else { ("n2", "n1") };
    w.run(&format!("take-gpu {kept} 0; gone; gone"));
    assert!(w.gpus().contains(&format!("{free}[own]")), "{}", w.gpus());
}

#[test]
fn shares_are_of_the_gpus_that_are_in_service() {
    let mut w = World::new("n1:4", "a:0 b:0");
    w.run("submit a/x --pods 4 --min 1; lose-gpu n1 3; lose-gpu n1 2; submit b/y --pods 4 --min 1");
    assert_eq!(w.gpus(), "n1[x y . .]", "half of two, not of four");
}

#[test]
fn an_elastic_one_that_shrinks_gives_up_what_is_out_of_service_first() {
    let mut w = World::new("n1:2", "a:1 b:1");
    w.run("submit a/flex -g 2 --elastic; take-gpu n1 0; submit b/own");
    assert_eq!((w.gpus().as_str(), w.waiting().as_str()), ("n1[flex flex]", "own"));
    w.run("return-gpu n1 0");
    assert_eq!(w.waiting(), "");
}
