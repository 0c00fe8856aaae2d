//! A recording of a server, replayed elsewhere.

use crate::sandbox::{Sandbox, wait_until};

const SERVER: &str = "elastane up --nodes 2x2x16GiB";

/// Runs a command line that succeeds.
fn done(sandbox: &Sandbox, line: &str) -> String {
    let output = sandbox.shell(line);
    assert_eq!(output.code, Some(0), "{line}: {}", output.text);
    output.text
}

fn becomes(sandbox: &Sandbox, line: &str, text: &str) {
    let is = || sandbox.shell(line).text.contains(text);
    assert!(wait_until(is), "{line}: {}", sandbox.shell(line).text);
}

/// Workloads of both dialects, a failure, a lost GPU, and a server that is killed and restarted;
/// recorded in `report`.
fn busy_server() -> Sandbox {
    let mut sandbox = Sandbox::new();
    sandbox.start_server(SERVER);
    done(
        &sandbox,
        "elastane project create team-a --gpu-quota 2; elastane project create team-b --gpu-quota 2\n\
         runai config project team-a\n\
         runai submit one -i ubuntu -g 3 -e TOKEN=hush-hush --command -- sleep 1000\n\
         runai training submit two -p team-b -i ubuntu -g 2 --command -- sleep 1000\n\
         runai workspace submit three -p team-b -i ubuntu -g 1 --command -- sh -c 'exit 3'",
    );
    sandbox.await_status("runai list -p team-b", "two", "Running");
    sandbox.kill_server();
    sandbox.start_server(SERVER);
    done(
        &sandbox,
        "elastane simulate gpu-fail node-1 0; runai training suspend two -p team-b\n\
         elastane project update team-b --gpu-quota 1; runai delete job one\n\
         elastane simulate gpu-heal node-1 0",
    );
    becomes(&sandbox, "runai training list -p team-b", "Stopped");
    done(&sandbox, "elastane record report");
    let again = sandbox.shell("elastane record report").text;
    assert!(again.contains("report exists already; give another name"), "{again}");
    sandbox
}

#[test]
fn a_recording_plays_the_same_elsewhere_stops_anywhere_and_is_asked_what_if() {
    let server = busy_server();
    let elsewhere = Sandbox::new();
    std::fs::copy(server.home().join("report"), elsewhere.home().join("report")).unwrap();
    drop(server);
    let text = done(&elsewhere, "TZ=Asia/Tokyo LC_ALL=tr_TR.UTF-8 elastane replay report");
    assert!(text.ends_with("the same again\n") && text.contains("+09:00"), "{text}");
    done(&elsewhere, "! grep hush-hush report");
    let whole = done(
        &elsewhere,
        "TZ=UTC elastane replay report --json > a; TZ=Asia/Tokyo elastane \
         replay report --json > b; cmp a b; grep -c . a",
    );
    let batches: u64 = whole.lines().last().unwrap().parse().unwrap();
    assert!(batches > 20, "{whole}");
    let until = batches / 2;
    let half = done(&elsewhere, &format!("elastane replay report --until {until} --events"));
    assert!(half.contains(&format!("{until} batch")) && half.contains("Scheduled"), "{half}");
    let state = "elastane replay report --snapshot > state; elastane simulate --from state";
    done(&elsewhere, state);
    let asked = "elastane replay report --submit 'more -g 4 -p team-a'";
    let what_if = done(&elsewhere, asked);
    assert!(what_if.contains("more"), "{what_if}");
}
