//! The live view: the effects of keys, and the drawing.

use api_types::{Pod, Project, Status};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use expect_test::{Expect, expect};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::style::Color;
use serde_json::{Value, json};

use super::draw::draw;
use super::panes::{Mark, Pane};
use super::text::Topic;
use super::view::{Action, Change, Choice, Mode, View};
use crate::tests::samples::{NOW_MS, workload};
use crate::tests::tops::used;
use dialects::intent::Verb;

const WORKLOADS: [&str; 5] = [
    "a1 Training Running team-a asked=1 held=1 age=125 on=node1 over",
    "a2 Training Running team-a asked=0.5 held=0.5 age=7200 on=node1",
    "b1 Training Pending team-b asked=2 age=40",
    "b2 Training Failed team-b asked=1 age=90000",
    "b3 Workspace Stopped team-b asked=1 age=30",
];

fn time(ms: u64) -> String {
    api_types::Time(units::Instant(ms)).to_string()
}

pub(super) fn project(name: &str, quota: f64, held: f64, requested: f64) -> Project {
    let at = time(NOW_MS);
    let gpus = |gpu: f64| json!({"gpu": gpu, "cpu": 0, "memory": 0});
    serde_json::from_value(json!({
        "id": "1", "name": name, "clusterId": "c", "parentId": "1",
        "parent": {"id": "1", "name": "default"}, "requestedNamespace": "n",
        "enforceRunaiScheduler": true, "createdAt": at, "createdBy": "ann", "updatedAt": at,
        "updatedBy": "ann", "totalResources": {"gpuQuota": quota}, "resources": [],
        "schedulingRules": {},
        "effective": {"schedulingRules": {}, "defaultNodePools": []},
        "status": {
            "namespace": "n", "phase": "Ready", "phaseMessage": "", "lastUpdatedTime": at,
            "quotaStatus": {
                "allocated": gpus(held), "allocatedNonPreemptible": gpus(0.0),
                "requested": gpus(requested),
            },
            "nodePoolQuotaStatuses": [],
            "additionalStatusData": {"fairShare": gpus(1.5)},
        },
    }))
    .unwrap()
}

fn node(name: &str, simulated: bool, used: &[f64]) -> Value {
    json!({
        "name": name, "pool": "default", "gpuType": "A100", "simulated": simulated,
        "gpuMemoryBytes": vec![80_u64 << 30; used.len()], "gpuUsed": used,
        "cpuMillis": 1000, "cpuUsedMillis": 0, "memoryBytes": 0, "memoryUsedBytes": 0,
    })
}

pub(super) fn status(nodes: &[Value]) -> Status {
    serde_json::from_value(json!({
        "version": "0", "clusterId": "c", "clusterName": "default", "runtime": "process",
        "fractionEnforcement": "none", "simulated": true, "now": time(NOW_MS), "eventSeq": 1,
        "gpus": 3, "gpusAllocated": 1.75, "nodes": nodes, "projects": 2, "workloads": 5,
    }))
    .unwrap()
}

fn pod(of: &str, project: &str, gpus: &[(u32, u64)]) -> Pod {
    let at = time(NOW_MS);
    serde_json::from_value(json!({
        "id": of, "name": format!("{of}-0-0"), "workloadId": format!("id-{of}"),
        "workloadName": of, "projectId": "1", "projectName": project, "clusterId": "c",
        "tenantId": 1, "priorityClassName": "low", "nodeName": "node1", "createdAt": at,
        "updatedAt": at, "k8sPhase": "Running", "k8sPhaseUpdatedAt": at, "containers": [],
        "requestedResources": {}, "gpus": gpus,
        "allocatedResources": {"gpu": 1, "cpu": 0, "cpuMemory": "0"},
    }))
    .unwrap()
}

/// A view of two nodes, two queues and five workloads.
fn view() -> View {
    let mut view = View::new(None, true);
    view.seen.status =
        Some(status(&[node("node1", false, &[1.0, 0.75]), node("node2", true, &[0.0])]));
    view.seen.projects = vec![project("team-a", 1.0, 1.5, 1.5), project("team-b", 2.0, 0.0, 2.0)];
    view.seen.workloads = WORKLOADS.map(workload).to_vec();
    let waits = json!([{
        "code": "P101", "at": time(NOW_MS),
        "message": "needs 2 GPUs and the freest node, node2, has 1; team-a holds 1.5",
    }]);
    view.seen.workloads[2].additional_fields.pending_reasons =
        serde_json::from_value(waits).unwrap();
    view.seen.workloads[3].additional_fields.last_exit = Some("exit code 3".to_owned());
    view.seen.pods = vec![pod("a1", "team-a", &[(0, 1000)]), pod("a2", "team-a", &[(1, 500)])];
    let measured =
        ["GPU_UTILIZATION_PER_GPU:0=37.5", "GPU_MEMORY_USAGE_BYTES_PER_GPU:0=42949672960"];
    view.seen.used = [("node1".to_owned(), used(&measured))].into();
    view
}

/// Types keys: single characters, and `<name>`.
fn types(view: &mut View, keys: &str) -> Option<Action> {
    let named = |name: &str| match name {
        "Enter" => KeyCode::Enter,
        "Esc" => KeyCode::Esc,
        "Tab" => KeyCode::Tab,
        "BackTab" => KeyCode::BackTab,
        "Back" => KeyCode::Backspace,
        "Down" => KeyCode::Down,
        "End" => KeyCode::End,
        other => panic!("{other}"),
    };
    let mut last = None;
    let mut rest = keys;
    while let Some(char) = rest.chars().next() {
        let (code, modifiers);
        (code, modifiers, rest) = match rest.strip_prefix('<').and_then(|rest| rest.split_once('>'))
        {
            Some((name, rest)) => match name.strip_prefix("C-") {
                Some(key) => {
                    (KeyCode::Char(key.chars().next().unwrap()), KeyModifiers::CONTROL, rest)
                }
                None => (named(name), KeyModifiers::NONE, rest),
            },
            None => (KeyCode::Char(char), KeyModifiers::NONE, &rest[char.len_utf8()..]),
        };
        last = view.press(KeyEvent::new(code, modifiers));
    }
    last
}

fn names(view: &View) -> String {
    let (rows, chosen) = view.rows(view.pane);
    let name = |(at, row): (usize, &super::panes::Row)| {
        let mark = if chosen == Some(at) { ">" } else { "" };
        format!("{mark}{}", row.cells[0].text)
    };
    rows.iter().enumerate().map(name).collect::<Vec<_>>().join(" ")
}

#[track_caller]
fn looks(view: &View, (columns, lines): (u16, u16), want: &Expect) {
    let mut terminal = Terminal::new(TestBackend::new(columns, lines)).unwrap();
    terminal.draw(|frame| draw(view, frame)).unwrap();
    let buffer = terminal.backend().buffer();
    let row = |y| -> String { (0..columns).map(|x| buffer[(x, y)].symbol()).collect() };
    let text: Vec<_> = (0..lines).map(|y| row(y).trim_end().to_owned()).collect();
    want.assert_eq(&format!("{}\n", text.join("\n")));
}

#[test]
fn keys_choose_filter_and_sort() {
    for (keys, want) in [
        ("", ">a1 a2 b1 b2 b3"),
        ("jj", "a1 a2 >b1 b2 b3"),
        ("jjk<Down>", "a1 a2 >b1 b2 b3"),
        ("<End>j", "a1 a2 b1 b2 >b3"),
        ("Gg", ">a1 a2 b1 b2 b3"),
        ("jj/TEAM-B<Enter>", ">b1 b2 b3"),
        ("/team-bb<Back>", ">b1 b2 b3"),
        ("/b<Esc>", ">a1 a2 b1 b2 b3"),
        ("/zz<Enter>", ""),
        ("/zz<Enter><Esc>", ">a1 a2 b1 b2 b3"),
        ("jssss", "b2 b1 a1 >a2 b3"),
        ("sssss", "a1 a2 b2 b3 b1"),
        ("ssssss", "b2 a2 a1 b1 b3"),
        ("ssssssss", ">a1 a2 b1 b2 b3"),
        ("jjp", ">b1 b2 b3"),
        ("jjpp", "a1 a2 >b1 b2 b3"),
        ("<Tab>", ">node1 node1 node2"),
        ("<BackTab>j", "team-a >team-b"),
        ("<BackTab>j<Enter>", ">b1 b2 b3"),
        ("<Tab>j<Enter>", "a1 >a2 b1 b2 b3"),
        ("<Tab>jj<Enter>", "node1 node1 >node2"),
        ("/b<Enter><Tab>j<Enter>", "a1 >a2 b1 b2 b3"),
        ("/a2<Enter><Tab>j<Enter>", ">a2"),
    ] {
        let mut view = view();
        assert_eq!(types(&mut view, keys), None, "{keys}");
        let got = names(&view);
        assert!(got == want || got.replace('>', "") == want, "{keys}: {got}, not {want}");
    }
}

#[test]
fn keys_ask_for_deeds_and_changes_are_asked_about_first() {
    let change = |verb, name: &str| {
        Some(Action::Change(Change { verb, id: format!("id-{name}"), name: name.to_owned() }))
    };
    let fetch = |topic, name: &str| Some(Action::Fetch(topic, format!("id-{name}")));
    for (keys, want) in [
        ("q", Some(Action::Quit)),
        ("<Esc>", Some(Action::Quit)),
        ("/x<C-c>", Some(Action::Quit)),
        ("<C-z>", Some(Action::Sleep)),
        ("j<Enter>", fetch(Topic::Details, "a2")),
        ("l", fetch(Topic::Logs, "a1")),
        ("lq", None),
        ("<Tab>l", None),
        ("d", None),
        ("dy", change(Verb::Delete, "a1")),
        ("dn", None),
        ("dny", None),
        ("d<Enter>", None),
        ("<Tab>dy", None),
        (" y", change(Verb::Suspend, "a1")),
        ("G y", change(Verb::Resume, "b3")),
        ("?q", None),
    ] {
        assert_eq!(types(&mut view(), keys), want, "{keys}");
    }
}

#[test]
fn what_cannot_be_done_is_said() {
    let mut inference = view();
    inference.seen.workloads[0].actions_support.suspend = false;
    types(&mut inference, " ");
    assert_eq!(inference.said.as_deref(), Some("a1 cannot be suspended"));
    let mut nothing = View::new(None, true);
    assert_eq!(types(&mut nothing, "dy"), None);
    assert!(nothing.said.is_none() && matches!(nothing.mode, Mode::Browse));
    types(&mut nothing, "l");
    assert!(nothing.said.is_some_and(|said| said.starts_with("choose a workload first")));
}

#[test]
fn what_is_chosen_stays_so_when_others_come_and_go() {
    let mut view = view();
    types(&mut view, "jj");
    view.seen.workloads.remove(0);
    assert_eq!(names(&view), "a2 >b1 b2 b3");
    view.seen.workloads.remove(1);
    assert_eq!(names(&view), "a2 b2 >b3", "it is gone: who is in its place");
    view.seen.workloads.clear();
    assert_eq!(names(&view), "");
}

#[test]
fn from_a_gpu_one_goes_to_who_holds_it() {
    let mut view = view();
    // It waits for a place that another pod still holds.
    let mut waits = pod("b1", "team-b", &[(0, 1000)]);
    waits.allocated_resources.gpu.0 = 0;
    view.seen.pods.insert(0, waits);
    types(&mut view, "<Tab><Enter>");
    assert_eq!(names(&view), ">a1 a2 b1 b2 b3");
    view.seen.workloads.remove(0);
    types(&mut view, "<Tab>g<Enter>");
    assert_eq!(
        (view.pane, view.said.as_deref()),
        (Pane::Gpus, Some("no workload that you can see holds it"))
    );
}

#[test]
fn gpus_are_sorted_by_number() {
    let mut view = view();
    view.seen.status = Some(status(&[node("node1", true, &[0.0; 12])]));
    types(&mut view, "<Tab>ss");
    let (rows, _) = view.rows(Pane::Gpus);
    let numbers: Vec<_> = rows.iter().map(|row| row.cells[1].text.as_str()).collect();
    assert_eq!(numbers, ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11"]);
}

#[test]
fn what_came_of_a_deed_is_said_once_there_is_room_for_it() {
    let mut view = view();
    types(&mut view, "dy/");
    view.said = Some("a1 deleted".to_owned());
    types(&mut view, "b<Enter>");
    assert_eq!(view.said.as_deref(), Some("a1 deleted"));
    types(&mut view, "j");
    assert_eq!(view.said, None);
}

#[test]
fn a_long_list_moves_only_where_the_chosen_row_would_not_be_seen() {
    let choice = Choice::default();
    let mut seen = |chosen| choice.scroll(100, chosen, 10);
    assert_eq!([0, 9, 10, 50, 45, 41, 40, 99].map(&mut seen), [0, 0, 1, 41, 41, 41, 40, 90]);
    assert_eq!(choice.scroll(20, 19, 10), 10, "many are gone");
    assert_eq!((choice.scroll(0, 0, 10), choice.scroll(5, 4, 0)), (0, 4));
    let mut view = view();
    types(&mut view, "Gk");
    looks(
        &view,
        (40, 8),
        &expect![[r#"
        default   1.75 of 3 GPUs held, simulated
        WORKLOAD   STATUS   WHERE, OR WH 4 of 5
        a2         Running  on node1
        b1         Pending  P101 needs 2 GPUs an
        b2         Failed   exit code 3
        b2 is Failed: exit code 3

        ? keys  Tab pane  / filter  s sort  p pr
    "#]],
    );
}

#[test]
fn everything_is_on_a_screen_of_80_by_24() {
    looks(
        &view(),
        (80, 24),
        &expect![[r#"
            default   1.75 of 3 GPUs held, simulated   5 workloads: 2 run, 1 wait
            NODE   GPU   MODEL      HELD   UTIL   MEMORY   USED   BY                 1 of 3
            node1  0     A100       1      38%    80GiB    40GiB  a1
            node1  1     A100       0.75   -      80GiB    -      a2 0.5, others 0.25
            node2  0     simulated  0      -      80GiB    -
            PROJECT   QUOTA   FAIR SHARE   HELD   OVER QUOTA   WAITS FOR   DEPARTMEN 1 of 2
            team-a    1       1.5          1.5    0.5          0           default
            team-b    2       1.5          0      0            2           default
            WORKLOAD   PROJECT   USER   STATUS   GPUS       AGE   WHERE, OR WHY NOT  1 of 5
            a1         team-a    ann    Running  1 (1)      2m    on node1, over quota
            a2         team-a    ann    Running  0.5 (0.5)  2h    on node1
            b1         team-b    ann    Pending  0 (2)      40s   P101 needs 2 GPUs and the
            b2         team-b    ann    Failed   - (1)      1d    exit code 3
            b3         team-b    ann    Stopped  0 (1)      30s







            a1 is Running: on node1, over quota

            ? keys  Tab pane  / filter  s sort  p project  Enter why  l logs  q quit
        "#]],
    );
}

#[test]
fn a_gpu_out_of_service_is_not_free() {
    let mut view = view();
    let mut broken = node("node1", true, &[0.0, 1.0]);
    let lost =
        |gpu: u32| json!({"gpu": gpu, "code": "E207", "name": "GpuLost", "message": "lost: off"});
    broken["gpuTroubles"] = json!([lost(0), lost(1)]);
    view.seen.status = Some(status(&[broken]));
    view.seen.pods = vec![pod("a1", "team-a", &[(1, 1000)])];
    types(&mut view, "<Tab>");
    looks(
        &view,
        (60, 12),
        &expect![[r#"
        default   1.75 of 3 GPUs held, simulated   5 workloads: 2 ru
        NODE   GPU   MODEL      HELD   UTIL   USED   BY      1 of 2
        node1  0     simulated  0      38%    40GiB  GpuLost
        node1  1     simulated  1      -      -      GpuLost, a1





        GPU 0 of node1 is out of service: E207 lost: off

        ? keys  Tab pane  / filter  s sort  p project  Enter why  l
    "#]],
    );
    let (rows, _) = view.rows(Pane::Gpus);
    assert!(rows.iter().all(|row| row.mark == Mark::Failed));
    let held = "GPU 1 of node1 is out of service, held by a1: E207 lost: off";
    assert_eq!(rows[1].sentence, held);
}

#[test]
fn numbers_are_those_of_the_project_that_is_seen() {
    let mut view = view();
    view.seen.workloads[1].phase = "Degraded".to_owned();
    let head = |view: &View| {
        let mut terminal = Terminal::new(TestBackend::new(100, 3)).unwrap();
        terminal.draw(|frame| draw(view, frame)).unwrap();
        let first = &terminal.backend().buffer().content[..100];
        let text: String = first.iter().map(ratatui::buffer::Cell::symbol).collect();
        text.trim_end().split_once("simulated   ").unwrap().1.to_owned()
    };
    assert_eq!(head(&view), "5 workloads: 2 run, 1 wait");
    types(&mut view, "jjp");
    assert_eq!(head(&view), "3 workloads: 0 run, 1 wait   only team-b");
}

#[test]
fn names_of_wide_characters_are_seen_whole() {
    let mut view = view();
    view.seen.workloads[0].submitted_by = "研究者一二".to_owned();
    let mut terminal = Terminal::new(TestBackend::new(120, 24)).unwrap();
    terminal.draw(|frame| draw(&view, frame)).unwrap();
    let text = terminal.backend().to_string();
    assert!("研究者一二".chars().all(|char| text.contains(char)), "{text}");
}

#[test]
fn on_a_small_screen_there_is_one_pane_and_what_matters_of_it() {
    let mut view = view();
    types(&mut view, "jj");
    looks(
        &view,
        (40, 12),
        &expect![[r#"
            default   1.75 of 3 GPUs held, simulated
            WORKLOAD   STATUS   WHERE, OR WH 3 of 5
            a1         Running  on node1, over quota
            a2         Running  on node1
            b1         Pending  P101 needs 2 GPUs an
            b2         Failed   exit code 3
            b3         Stopped


            b1 is Pending: P101 needs 2 GPUs and the
            freest node, node2, has 1; team-a holds
            ? keys  Tab pane  / filter  s sort  p pr
        "#]],
    );
    types(&mut view, "<Tab>");
    looks(
        &view,
        (40, 12),
        &expect![[r#"
        default   1.75 of 3 GPUs held, simulated
        NODE   GPU   HELD   UTIL   BY    1 of 3
        node1  0     1      38%    a1
        node1  1     0.75   -      a2 0.5, other
        node2  0     0      -




        GPU 0 of node1 is held by a1

        ? keys  Tab pane  / filter  s sort  p pr
    "#]],
    );
    for size in [(1, 1), (3, 2), (10, 5), (200, 60)] {
        Terminal::new(TestBackend::new(size.0, size.1))
            .unwrap()
            .draw(|to| draw(&view, to))
            .unwrap();
    }
}

#[test]
fn questions_faults_and_texts_have_their_place() {
    let mut away = view();
    away.away = Some("the elastane server is not running at http://127.0.0.1:1".to_owned());
    types(&mut away, "jd");
    away.pane = Pane::Queues;
    looks(
        &away,
        (80, 18),
        &expect![[r#"
            NO ANSWER, what follows is old: the elastane server is not running at http://127
            NODE   GPU   MODEL      HELD   UTIL   MEMORY   USED   BY                 1 of 3
            node1  0     A100       1      38%    80GiB    40GiB  a1
            node1  1     A100       0.75   -      80GiB    -      a2 0.5, others 0.25
            PROJECT   QUOTA   FAIR SHARE   HELD   OVER QUOTA   WAITS FOR   DEPARTMEN 1 of 2
            team-a    1       1.5          1.5    0.5          0           default
            team-b    2       1.5          0      0            2           default
            WORKLOAD   PROJECT   USER   STATUS   GPUS       AGE   WHERE, OR WHY NOT  2 of 5
            a1         team-a    ann    Running  1 (1)      2m    on node1, over quota
            a2         team-a    ann    Running  0.5 (0.5)  2h    on node1
            b1         team-b    ann    Pending  0 (2)      40s   P101 needs 2 GPUs and the
            b2         team-b    ann    Failed   - (1)      1d    exit code 3
            b3         team-b    ann    Stopped  0 (1)      30s


            team-a holds 1.5 GPUs, of a quota of 1 and a fair share of 1.5, and waits for 0

            delete a2? y to do it, any other key to leave it
        "#]],
    );
    let mut reading = view();
    types(&mut reading, "l");
    let Mode::Read(text) = &mut reading.mode else { panic!("{:?}", reading.mode) };
    text.add(b"epoch 1\nepoch 2 \x1b[31mred\x1b[0m\n");
    looks(
        &reading,
        (40, 8),
        &expect![[r#"
        default   1.75 of 3 GPUs held, simulated
        a1: what it writes
        epoch 1
        epoch 2 red



        q back  up, down, Page Up, Page Down
    "#]],
    );
}

#[test]
fn all_keys_are_on_one_page_or_read_as_any_text() {
    let mut small = view();
    small.size = (40, 12);
    types(&mut small, "?<End>");
    looks(
        &small,
        (40, 12),
        &expect![[r#"
        default   1.75 of 3 GPUs held, simulated
        What keys do
        Space           suspend the workload, or
        resume it (asks first)
        ?               this page
        Ctrl-Z          leave for a moment; `fg`
        comes back
        q, Esc          end; in a text, back to
        the panes; Ctrl-C always ends
                        HELD, QUOTA, … are GPUs;
        - is where nothing is measured
        q back  up, down, Page Up, Page Down
    "#]],
    );
    types(&mut small, "q");
    assert!(matches!(small.mode, Mode::Browse));
    let mut asking = view();
    types(&mut asking, "?");
    looks(
        &asking,
        (80, 18),
        &expect![[r#"
            default   1.75 of 3 GPUs held, simulated   5 workloads: 2 run, 1 wait
            What keys do
            up, down, j, k  other rows; also Page Up, Page Down, Home, End
            Tab, Shift-Tab  the next pane, the one before: GPUs, queues, workloads
            /               only rows with these words; Enter keeps it so, Esc does not
            s               sort by the next column: the largest first, or by letters
            p               only the project of the chosen row; again for all
            Enter           of a workload: why it is where it is, its pods and events
                            of a queue or a GPU: go to its workloads
            l               what the workload writes, as it comes
            d               delete the workload (asks first)
            Space           suspend the workload, or resume it (asks first)
            ?               this page
            Ctrl-Z          leave for a moment; `fg` comes back
            q, Esc          end; in a text, back to the panes; Ctrl-C always ends
                            HELD, QUOTA, … are GPUs; - is where nothing is measured

            q back  up, down, Page Up, Page Down
        "#]],
    );
}

#[test]
fn nothing_is_coloured_where_no_colour_is_wanted() {
    for colours in [true, false] {
        let mut view = view();
        view.colours = colours;
        let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
        terminal.draw(|frame| draw(&view, frame)).unwrap();
        let cells = &terminal.backend().buffer().content;
        assert_eq!(cells.iter().any(|cell| cell.fg != Color::Reset), colours);
    }
}
