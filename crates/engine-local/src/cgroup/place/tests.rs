//! Finding a place in hierarchies as machines show them.

use super::*;

fn key() -> RunKey {
    RunKey { pod: uuid::Uuid::from_u128(7), generation: 1 }
}

/// A hierarchy of version 2 in this folder; its top and a session of it have these controllers.
fn unified(top: &Path, controllers: &str, own: &str) -> Hierarchy {
    for folder in [top.to_owned(), top.join("session"), top.join(own)] {
        fs::create_dir_all(&folder).expect("made");
        fs::write(folder.join("cgroup.controllers"), controllers).expect("written");
    }
    Hierarchy { unified: true, options: Vec::new(), top: top.to_owned(), own: top.join(own) }
}

#[test]
fn mounts_and_groups_are_read_together() {
    let mounts = "24 1 0:22 / /proc rw - proc proc rw\n\
                  32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup cgroup rw,cpu,cpuacct\n\
                  35 31 0:32 /docker/1 /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n\
                  41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw,nsdelegate\n";
    let groups = "9:name=systemd:/\n4:memory:/docker/1/a:b\n2:cpu,cpuacct:/\n0::/user.slice\n";
    let found = hierarchies(mounts, groups);
    let own: Vec<_> = found.iter().map(|h| h.own.display().to_string()).collect();
    let memory = "/sys/fs/cgroup/memory/a:b";
    assert_eq!(own, ["/sys/fs/cgroup/cpu,cpuacct", memory, "/sys/fs/cgroup/unified/user.slice"]);
    assert_eq!(found.iter().map(|h| h.unified).collect::<Vec<_>>(), [false, false, true]);
}

#[test]
fn version_2_hands_its_controllers_down_to_runs() {
    let dir = tempfile::tempdir().expect("a folder");
    let place = Place::among(&[unified(dir.path(), "cpuset cpu io memory pids", "")]);
    assert_eq!(place.keeps(), LimitsKept::ALL);
    for control in ["cgroup.subtree_control", "elastane/cgroup.subtree_control"] {
        let text = fs::read_to_string(dir.path().join(control)).expect("written");
        assert_eq!(text, "+cpu +memory +pids", "{control}");
    }
    assert_eq!(place.runs(), BTreeSet::new());
    let group = place.group(key()).expect("one");
    group.make(&engine::Limits::default()).expect("made");
    assert_eq!(place.runs(), BTreeSet::from([key()]));
}

#[test]
fn a_controller_that_was_not_delegated_is_named() {
    let dir = tempfile::tempdir().expect("a folder");
    let keeps = Place::among(&[unified(dir.path(), "memory pids", "")]).keeps();
    assert!(keeps.memory && !keeps.cpu && keeps.why.contains("does not have the controllers cpu"));
}

#[test]
fn the_servers_own_group_is_the_second_choice_also_once_it_has_stepped_aside() {
    for own in ["session", "session/elastane-server"] {
        let dir = tempfile::tempdir().expect("a folder");
        let hierarchy = unified(dir.path(), "cpu memory pids", own);
        // At the top, nothing can be made.
        fs::write(dir.path().join(FOLDER), "").expect("written");
        let found = Place::among(&[hierarchy]);
        let wanted = dir.path().join("session").join(FOLDER);
        assert!(found.folders.values().all(|folder| *folder == wanted), "{found:?}");
        assert_eq!(found.keeps(), LimitsKept::ALL);
    }
}

#[test]
fn version_1_takes_each_controller_where_it_is() {
    let dir = tempfile::tempdir().expect("a folder");
    let of = |options: [&str; 2], folder: &str| {
        let top = dir.path().join(folder);
        fs::create_dir_all(&top).expect("made");
        let options = options.map(str::to_owned).to_vec();
        Hierarchy { unified: false, options, own: top.clone(), top }
    };
    let mut mounted = vec![of(["cpu", "cpuacct"], "c"), of(["rw", "memory"], "m")];
    let place = Place::among(&mounted);
    assert_eq!((place.keeps(), place.folders.len()), (LimitsKept::ALL, 3));
    mounted.pop();
    let keeps = Place::among(&mounted).keeps();
    assert!(keeps.cpu && !keeps.memory && !keeps.why.is_empty());
}

#[test]
fn without_groups_there_is_a_reason_and_no_group() {
    let (top, own) = (PathBuf::from("/no/such"), PathBuf::from("/no/such"));
    let gone = Hierarchy { unified: true, options: Vec::new(), top, own };
    for hierarchies in [vec![], vec![gone]] {
        let place = Place::among(&hierarchies);
        let keeps = place.keeps();
        assert!(!keeps.cpu && !keeps.memory && keeps.why.contains("control groups"), "{keeps:?}");
        assert_eq!(place.group(key()), None);
    }
}

#[test]
fn groups_limit_memory_of_gpus_where_the_kernel_has_the_controller() {
    let dir = tempfile::tempdir().expect("a folder");
    let capacity = "drm/0000:0a:00.0/vram0 17179869184\n";
    fs::write(dir.path().join("dmem.capacity"), capacity).expect("written");
    let mut place = Place::among(&[unified(dir.path(), "cpu memory pids dmem", "")]);
    assert!(!place.folders.contains_key(&Controller::Dmem), "only where it is chosen");
    let own = dir.path().join(FOLDER);
    fs::create_dir_all(&own).expect("a folder");
    fs::write(own.join("dmem.min"), "").expect("written");
    let groups = place.limit_devices().expect("it can");
    let least = |folder: &Path| fs::read_to_string(folder.join("dmem.min")).ok();
    assert_eq!(least(&own).as_deref(), Some("drm/0000:0a:00.0/vram0 max"));
    assert_eq!((&*groups.regions, groups.folder), (capacity, dir.path().join(FOLDER)));
    for control in ["cgroup.subtree_control", "elastane/cgroup.subtree_control"] {
        assert_eq!(fs::read_to_string(dir.path().join(control)).expect("written"), "+dmem");
    }
    let group = place.group(key()).expect("one");
    group.make(&engine::Limits::default()).expect("made");
    let limits = BTreeMap::from([("drm/0000:0a:00.0/vram0".to_owned(), 1 << 30)]);
    group.limit_devices(&limits).expect("limited");
    let of_run = own.join(key().to_string());
    assert_eq!(least(&of_run), None, "a kernel without it");
    fs::write(of_run.join("dmem.min"), "").expect("written");
    group.limit_devices(&limits).expect("limited");
    assert_eq!(least(&of_run).as_deref(), Some("drm/0000:0a:00.0/vram0 1073741824"));
    let none = BTreeMap::from([("drm/0000:0a:00.0/vram0".to_owned(), 0)]);
    group.limit_devices(&none).expect("limited");
    assert_eq!(least(&of_run).as_deref(), Some("drm/0000:0a:00.0/vram0 1073741824"), "as it was");
    let all = BTreeMap::from([("drm/0000:0a:00.0/vram0".to_owned(), u64::MAX)]);
    group.limit_devices(&all).expect("not limited");
    let written =
        fs::read_to_string(dir.path().join(FOLDER).join(key().to_string()).join("dmem.max"));
    assert_eq!(written.ok().as_deref(), Some("drm/0000:0a:00.0/vram0 max"));
    assert_eq!(place.keeps(), LimitsKept::ALL);
}

#[test]
fn why_groups_do_not_limit_memory_of_gpus_is_said() {
    let dir = tempfile::tempdir().expect("a folder");
    let why = |controllers| {
        Place::among(&[unified(dir.path(), controllers, "")])
            .limit_devices()
            .expect_err("it cannot")
    };
    assert!(why("cpu memory pids").ends_with("does not have the controller dmem"));
    let no_regions = why("cpu memory pids dmem");
    assert!(no_regions.contains("dmem.capacity: No such file"), "{no_regions}");
    let old = Place { version: Version::V1, folders: BTreeMap::new(), why: None, unified: None };
    assert!({ old }.limit_devices().expect_err("it cannot").contains("version 2"));
    assert_eq!(Place::none("none here").limit_devices().expect_err("it cannot"), "none here");
}
