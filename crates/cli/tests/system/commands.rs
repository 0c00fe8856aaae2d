//! Commands of the researcher's program that are not about one workload, with a real server.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, TcpListener};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::sandbox::{Sandbox, finish, wait_until};
use crate::sessions::end;

fn printed(sandbox: &Sandbox, line: &str) -> String {
    let output = sandbox.shell(line);
    assert_eq!(output.code, Some(0), "{line}\n{}", output.text);
    output.text
}

/// Waits until a background command has written this into a file.
fn await_in(sandbox: &Sandbox, file: &str, part: &str) {
    let text = || std::fs::read_to_string(sandbox.home().join(file)).unwrap_or_default();
    assert!(wait_until(|| text().contains(part)), "{file} lacks {part:?}\n{}", text());
}

const MANIFEST: &str = r#"
apiVersion: batch/v1
kind: Job
metadata:
  name: from-file
  namespace: runai-team-a
spec:
  completions: 2
  template:
    spec:
      restartPolicy: Never
      containers:
        - name: main
          image: ubuntu
          command: ["sh", "-c", "echo hello from a manifest"]
"#;

#[test]
fn a_manifest_is_submitted_from_a_file_and_from_the_input() {
    let mut sandbox = Sandbox::new();
    sandbox.start_server("elastane up --gpus 1x1GiB");
    printed(&sandbox, "elastane project create team-a && runai config project team-a");
    std::fs::write(sandbox.state_dir().join("m.yaml"), MANIFEST).expect("a file");
    let submitted = printed(&sandbox, "runai workload submit -f $ELASTANE_STATE_DIR/m.yaml");
    assert!(submitted.starts_with("Creating workload from-file...\n"), "{submitted}");
    let numbered = "runai workload submit --name-prefix n -f - < $ELASTANE_STATE_DIR/m.yaml";
    assert!(printed(&sandbox, numbered).contains("Creating workload n-0..."));
    printed(&sandbox, "runai wait from-file n-0");
    assert_eq!(printed(&sandbox, "runai workload logs n-0"), "hello from a manifest\n");
    let again = sandbox.shell("runai workload submit -f $ELASTANE_STATE_DIR/m.yaml");
    assert_eq!(again.code, Some(1), "{}", again.text);
    let missing = sandbox.shell("runai workload submit -f missing.yaml");
    assert!(missing.text.contains("cannot read missing.yaml"), "{}", missing.text);
}

const POSTED: &str = r#"
apiVersion: batch/v1
kind: Job
metadata:
  generateName: posted-
  namespace: default
  labels: {priorityClassName: very-high, kai.scheduler/preemptibility: non-preemptible}
spec:
  completions: 2
  parallelism: 2
  completionMode: Indexed
  template:
    spec:
      restartPolicy: Never
      serviceAccountName: builder
      containers:
        - name: main
          image: ubuntu
          env: [{name: NAME, value: shard}]
          command: [echo, "$(NAME)", "$$(NAME)", "$(JOB_COMPLETION_INDEX)", "$(MISSING)"]
          ports: [{containerPort: 80}]
"#;

#[test]
fn a_manifest_runs_as_it_was_posted_and_one_note_names_what_has_no_effect() {
    let mut sandbox = Sandbox::new();
    sandbox.start_server("elastane up --gpus 1x1GiB");
    printed(&sandbox, "elastane project create team-a && runai config project team-a");
    std::fs::write(sandbox.state_dir().join("posted.yaml"), POSTED).expect("a file");
    let said = printed(&sandbox, "runai workload submit -f $ELASTANE_STATE_DIR/posted.yaml 2>&1");
    let name = said.strip_prefix("Creating workload ").and_then(|rest| rest.split("...").next());
    let name = name.unwrap_or_default();
    assert!(name.starts_with("posted-") && name.len() == "posted-".len() + 5, "{said}");
    let note = "no effect here: metadata.namespace, \
                spec.template.spec.containers[0].ports, spec.template.spec.serviceAccountName\n";
    assert!(said.contains(note), "{said}");
    assert!(!said.contains("--preemptibility"), "the label says it: {said}");
    printed(&sandbox, &format!("runai wait {name}"));
    for pod in 0..2 {
        let line = format!("runai workload logs {name} --pod {name}-{pod}-1");
        assert_eq!(printed(&sandbox, &line), format!("shard $(NAME) {pod} $(MISSING)\n"));
    }
    let id = printed(&sandbox, &format!("runai workload describe {name} -o jsonpath={{.id}}"));
    let shown = printed(&sandbox, &format!("runai workload describe --uuid={}", id.trim()));
    assert!(shown.contains("very-high") && shown.contains("Preemptible:  No"), "{shown}");
}

#[test]
fn what_is_kept_beside_workloads_is_listed_as_far_as_the_project_can_use_it() {
    let mut sandbox = Sandbox::new();
    sandbox.start_server("elastane up --gpus 1x1GiB");
    printed(&sandbox, "elastane project create team-a && elastane project create team-b");
    for (path, body) in [
        (
            "workload-templates/trainings",
            r#"{"meta": {"name": "mine", "scopeType": "project", "scopeId": "1"},
                "spec": {"image": "ubuntu"}}"#,
        ),
        (
            "asset/environment",
            r#"{"meta": {"name": "torch", "scope": "tenant"}, "spec": {"image": "ubuntu"}}"#,
        ),
    ] {
        let made = sandbox.ask("POST", &format!("/api/v1/{path}"), body).expect("an answer");
        assert!(made.0 < 300, "{made:?}");
    }
    let list = |line: &str| printed(&sandbox, &format!("runai {line}"));
    assert!(list("template list -p team-a").contains("mine  Training  project  ubuntu  -\n"));
    assert!(!list("template list -p team-b").contains("mine"));
    assert!(list("list templates -A").starts_with("NAME  DESCRIPTION\nmine  -\n"));
    assert!(list("environment describe torch -p team-b").contains("Image: ubuntu\n"));
    assert!(list("department list").contains("team-a,team-b\n"));
    assert!(list("nodepool list --json").contains("\"name\": \"default\""));
    for noun in ["compute", "datasource", "pvc", "credential", "workload-type"] {
        list(&format!("{noun} list -A"));
    }
    let missing = sandbox.shell("runai template describe other -p team-a");
    assert_eq!(missing.code, Some(4), "{}", missing.text);
}

#[test]
fn every_list_and_description_is_printed_in_every_form() {
    let mut sandbox = Sandbox::new();
    sandbox.start_server("elastane up --gpus 2x1GiB");
    printed(&sandbox, "elastane project create team-a && runai config project team-a");
    for name in ["b1", "a1"] {
        let job = format!("runai submit {name} -i ubuntu -g 0.5 --command -- sleep 1000");
        printed(&sandbox, &job);
    }
    printed(&sandbox, "runai wait a1 b1 --for running");
    let lists = [
        ("runai list jobs", "training/a1"),
        ("runai list projects", "project/team-a"),
        ("runai list clusters", "cluster/"),
        ("runai workload list", "training/a1"),
        ("runai training list", "training/a1"),
        ("runai project list", "project/team-a"),
        ("runai department list", "department/default"),
        ("runai nodepool list", "nodepool/default"),
        ("runai workload-type list", "workload-type/"),
        ("elastane project list", "project/team-a"),
        ("elastane config show", "setting/listen"),
        ("elastane user list", ""),
        ("elastane service-account list", ""),
        ("elastane access-key list", ""),
        ("elastane access-rule list", ""),
        ("elastane access-rule roles", "role/"),
        ("elastane config-map list -p team-a", ""),
    ];
    for (line, name) in lists {
        assert!(printed(&sandbox, &format!("{line} -o name")).contains(name), "{line}");
        let [json, path] = ["json", "jsonpath={.items}"]
            .map(|form| printed(&sandbox, &format!("{line} -o '{form}'")));
        let count = |text: &str| match serde_json::from_str(text) {
            Ok(serde_json::Value::Array(items)) => items.len(),
            other => panic!("{line}: {other:?}"),
        };
        assert_eq!(count(&json), count(&path), "{line}");
        printed(&sandbox, &format!("{line} -o yaml"));
        let wide = printed(&sandbox, &format!("{line} -o wide"));
        let bare = printed(&sandbox, &format!("{line} -o wide --no-headers"));
        assert!(wide.lines().count() > bare.lines().count(), "{line}\n{wide}\n{bare}");
    }
    for (line, text) in [
        ("runai workload list -o wide --no-headers --sort name", "a1  Training"),
        ("runai list jobs --sort name:desc --no-headers", "b1  Running"),
        (
            "runai list -o jsonpath='{range .items[*]}{.name}:{.phase} {end}' --sort name",
            "a1:Running b1:Running \n",
        ),
        ("runai list nodes -o jsonpath='{[0].gpuUsed[0]}'", "1\n"),
        ("runai describe job a1 -o jsonpath={.status}", "Running\n"),
        ("runai training describe a1 -o name", "training/a1\n"),
        ("runai explain a1 -o jsonpath={.phase}", "Running\n"),
        ("runai describe node -o jsonpath={[0].pool}", "default\n"),
        ("runai project list -o name", "project/team-a\n"),
        ("elastane project describe team-a -o jsonpath={.name}", "team-a\n"),
        ("elastane status -o jsonpath={.gpus}", "2\n"),
    ] {
        let output = printed(&sandbox, line);
        assert!(output.starts_with(text), "{line}\n{output}");
    }
    let wide = printed(&sandbox, "runai workload list -o wide");
    for title in ["GPU Request", "Restarts", "Age", "Node", "User"] {
        assert!(wide.contains(title), "{wide}");
    }
    let wrong = sandbox.shell("runai list --sort agee");
    assert_eq!(wrong.code, Some(2), "{}", wrong.text);
    assert!(wrong.text.contains("did you mean `age`?"), "{}", wrong.text);
}

#[test]
fn a_watched_list_prints_what_changes() {
    let mut sandbox = Sandbox::new();
    sandbox.start_server("elastane up --gpus 1x1GiB");
    printed(&sandbox, "elastane project create team-a && runai config project team-a");
    printed(&sandbox, "runai submit a1 -i ubuntu --command -- sleep 1000");
    printed(&sandbox, "runai wait a1 --for running");
    let watching = sandbox.begin("exec runai workload list --watch > watched");
    await_in(&sandbox, "watched", "a1");
    printed(&sandbox, "runai suspend a1");
    await_in(&sandbox, "watched", "Stopped");
    end(&sandbox, "runai workload list --watch", Signal::INT);
    finish(watching);
    let watched = printed(&sandbox, "cat watched");
    let seen = watched.lines().filter(|line| line.starts_with("a1")).collect::<Vec<_>>();
    assert!(seen.len() >= 2 && watched.matches("Workload").count() == 1, "{watched}");
    assert!(seen.last().expect("two").contains("Stop"), "{watched}");
}

#[test]
fn a_watched_list_goes_on_after_a_restart_of_the_server() {
    let mut sandbox = Sandbox::new();
    sandbox.start_server("elastane up --gpus 1x1GiB");
    printed(&sandbox, "elastane project create team-a && runai config project team-a");
    printed(&sandbox, "runai submit a1 -i ubuntu --command -- sleep 1000");
    printed(&sandbox, "runai wait a1 --for running");
    let lists = ["runai workload list --watch", "elastane project list --watch"];
    let watching = lists.map(|line| {
        let file = line.split_once(' ').expect("words").0;
        let begun = sandbox.begin(&format!("exec {line} > {file}.out 2> {file}.notes"));
        await_in(&sandbox, &format!("{file}.out"), "team-a");
        begun
    });
    sandbox.kill_server();
    for file in ["runai.notes", "elastane.notes"] {
        await_in(&sandbox, file, "waiting for the server");
    }
    sandbox.start_server("elastane up --gpus 1x1GiB");
    printed(&sandbox, "elastane project create team-b");
    printed(&sandbox, "runai suspend a1");
    await_in(&sandbox, "runai.out", "Stopped");
    await_in(&sandbox, "elastane.out", "team-b");
    lists.iter().for_each(|line| end(&sandbox, line, Signal::INT));
    for watch in watching {
        finish(watch);
    }
    let notes = printed(&sandbox, "cat runai.notes elastane.notes");
    assert_eq!(notes.matches("waiting for the server").count(), 2, "once each: {notes}");
}

#[test]
fn a_watched_list_and_a_wait_ask_nothing_while_nothing_changes() {
    let mut sandbox = Sandbox::new();
    sandbox.start_server("elastane up --gpus 1x1GiB");
    printed(&sandbox, "elastane project create team-a && runai config project team-a");
    printed(&sandbox, "runai submit a1 -i ubuntu --command -- sleep 1000");
    printed(&sandbox, "runai wait a1 --for running");
    for (line, path, has_unseen) in [
        ("runai list --watch", "GET /api/v1/workloads ", false),
        ("runai project list --watch", "GET /api/v1/org-unit/projects ", false),
        ("runai wait a1 --for deleted", "GET /api/v1/workloads/", false),
        ("runai explain a1 --watch", "/explain ", true),
        ("runai top node --watch", "GET /elastane/v1/status ", true),
    ] {
        let since = Instant::now();
        let watching = sandbox.begin(&format!("exec {line} --loglevel debug > said 2>&1"));
        await_in(&sandbox, "said", "GET /elastane/v1/changes 200");
        std::thread::sleep(Duration::from_secs(4));
        end(&sandbox, line, Signal::INT);
        finish(watching);
        let said = printed(&sandbox, "cat said; rm said");
        // Once for the first answer, and once when it listens for changes; every 5 s if the change
        // stream does not cover all of the answer.
        let most = if has_unseen { 2 + since.elapsed().as_secs() / 5 } else { 2 };
        let asked = said.matches(path).count() as u64;
        assert!((1..=most).contains(&asked), "{line}: {asked} times\n{said}");
        assert_eq!(said.matches("GET /elastane/v1/changes 200").count(), 1, "{said}");
    }
}

#[test]
fn departments_node_pools_and_time_limits_are_managed_at_the_command_line() {
    let mut sandbox = Sandbox::new();
    sandbox.start_server("elastane up --nodes 2x2x1GiB");
    for (line, said) in [
        ("department create research --gpu-quota 3 --training-time-limit 12h", "GPU quota 3"),
        ("department list --no-headers --sort gpu:desc", "research 3 0 training 12h"),
        ("project create nlp --department research --gpu-quota 2", "project nlp created"),
        ("project update nlp --workspace-time-limit 1h30m --workspace-idle-limit 600", "updated"),
        ("project update nlp --gpu-quota 1", "GPU quota 1"),
        ("project describe nlp", "Time limits:        workspace 1h30m, idle workspace 10m"),
        ("project update nlp --workspace-time-limit none", "updated"),
        ("project describe nlp -o jsonpath={.schedulingRules}", "{\"interactiveJobMaxIdle"),
        ("department update research --gpu-quota 4", "GPU quota 4"),
        ("department list", "training 12h"),
        (
            "node-pool create left --label kubernetes.io/hostname=node-1",
            "node pool left created: node-1",
        ),
        ("node-pool list", "left kubernetes.io/hostname=node-1 Ready - - node-1"),
        ("node-pool update left --gpu-fractions hard --gpu-time-slicing fair", "left changed"),
        ("node-pool list", "left kubernetes.io/hostname=node-1 Ready fair hard node-1"),
        ("node-pool delete left", "deleted"),
        ("project delete nlp", "deleted"),
        ("department delete research", "deleted"),
    ] {
        let output = printed(&sandbox, &format!("elastane {line}"));
        let text = output.split_whitespace().collect::<Vec<_>>().join(" ");
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(&said), "{line}\n{output}");
    }
    for (line, said) in [
        ("department delete defualt", "was not found; did you mean `default`?"),
        ("node-pool delete defualt", "was not found; did you mean `default`?"),
        ("project create x --department reserach", "department reserach was not found"),
    ] {
        let output = sandbox.shell(&format!("elastane {line}"));
        assert_eq!(output.code, Some(4), "{line}\n{}", output.text);
        assert!(output.text.contains(said), "{line}\n{}", output.text);
    }
}

#[test]
fn diagnostics_tell_what_is_wrong_and_no_secret() {
    let mut sandbox = Sandbox::new();
    sandbox.start_server("elastane up --gpus 1x1GiB");
    let token = printed(&sandbox, "runai auth token");
    assert_eq!(token, printed(&sandbox, "elastane token"));
    let told = printed(&sandbox, "runai diagnostics");
    for part in ["Version: ", "Clock: the same as the server's", "Login accepted: yes"] {
        assert!(told.contains(part), "{told}");
    }
    let refused = printed(&sandbox, "RUNAI_TOKEN=hush runai diagnostics --file told && cat told");
    assert!(refused.contains("Login accepted: no: "), "{refused}");
    assert!(refused.contains("Variables that are set: RUNAI_TOKEN"), "{refused}");
    assert!(!refused.contains("hush") && !told.contains(token.trim()), "{refused}");
    let fields = printed(&sandbox, "runai diagnostics -o json");
    assert!(fields.contains("\"loginAccepted\": \"yes"), "{fields}");
    let sent = printed(&sandbox, "runai --debug project list 2>&1 >/dev/null");
    assert!(sent.contains("GET /api/v1/") && sent.contains(" 200 "), "{sent}");
    assert!(!sent.contains(token.trim()), "{sent}");
    sandbox.kill_server();
    assert!(printed(&sandbox, "runai diagnostics").contains("Answer: none: "));
    assert_eq!(sandbox.shell("runai kubeconfig set").code, Some(1));
}

#[test]
fn settings_that_cannot_be_used_are_told_and_what_needs_none_goes_on() {
    let mut sandbox = Sandbox::new();
    sandbox.start_server("elastane up --gpus 1x1GiB");
    let (port, file) = (sandbox.port(), ".runai/config.json");
    for (set, said) in [
        ("RUNAI_CP_URL=garbage", "Settings: cannot be used: `garbage` is not an address"),
        ("RUNAI_TABLE=v3", "Settings: cannot be used: RUNAI_TABLE is `v3`"),
        (&format!("RUNAI_CP_URL=http://ann:hush@127.0.0.1:{port}"), "there is a login in it"),
    ] {
        let told = printed(&sandbox, &format!("{set} runai diagnostics"));
        assert!(told.contains("Version: ") && told.contains("Variables that are set: "), "{told}");
        assert!(told.contains(said) && !told.contains("hush"), "{told}");
        printed(&sandbox, &format!("{set} runai version && {set} runai report metrics output"));
        assert_eq!(sandbox.shell(&format!("{set} runai list jobs")).code, Some(2));
    }
    printed(&sandbox, "env -u HOME runai diagnostics && env -u HOME runai completion bash");
    printed(&sandbox, &format!("mkdir -p .runai && echo '{{' > {file}"));
    assert!(printed(&sandbox, "runai diagnostics").contains("config.json is damaged"));
    let wrong = r#"{"control_plane": {"url": "http://ann:hush@gpu:7070"}}"#;
    printed(&sandbox, &format!("echo '{wrong}' > {file}"));
    assert_eq!(sandbox.shell("runai list jobs -p a").code, Some(2));
    printed(&sandbox, &format!("runai config set --cp-url http://127.0.0.1:{port}"));
    assert!(printed(&sandbox, "runai diagnostics").contains("Login accepted: yes"));
}

#[test]
fn settings_are_told_as_fields_and_given_to_others() {
    let mut sandbox = Sandbox::new();
    sandbox.start_server("elastane up --gpus 1x1GiB");
    let url = format!("http://127.0.0.1:{}", sandbox.port());
    let told = printed(&sandbox, "runai config describe -o json");
    for field in [&format!("\"url\": \"{url}\""), "\"urlFrom\": \"machine\"", "\"project\": null"] {
        assert!(told.contains(field), "{field}: {told}");
    }
    printed(&sandbox, &format!("runai config set --cp-url {url}"));
    assert!(
        printed(&sandbox, "runai config describe").contains(&format!("{url}, from the settings\n"))
    );
    let same = printed(&sandbox, &format!("RUNAI_CP_URL={url} runai config describe"));
    assert!(same.contains(&format!("{url}, from RUNAI_CP_URL\n")), "{same}");
    let made = printed(&sandbox, "runai config generate --file others.json && cat others.json");
    assert!(made.contains(&format!("note: {url} is the server for this machine only")), "{made}");
    assert!(made.contains(&format!("\"url\": \"{url}\"")), "{made}");
    printed(&sandbox, "mkdir other && cp others.json other/config.json");
    printed(&sandbox, "runai --config-path other list projects");
    let refused = sandbox.shell("runai config generate --file /nowhere/f");
    assert!(refused.text.contains("failed to write /nowhere/f"), "{}", refused.text);
}

/// A server that sends these bytes, with this content length.
fn hands_out(program: &'static str, length: usize) -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let port = listener.local_addr().expect("bound").port();
    std::thread::spawn(move || {
        let mut open = Vec::new();
        for mut stream in listener.incoming().flatten() {
            let mut reader = BufReader::new(stream.try_clone().expect("a handle"));
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") && reader.read_line(&mut head).unwrap_or(0) > 0 {}
            let _gone =
                write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{program}");
            open.push(stream);
        }
    });
    port
}

#[test]
fn an_upgrade_that_is_refused_or_interrupted_leaves_the_program_as_it_was() {
    const PROGRAM: &str = "#!/bin/sh\nexit 3\n";
    let sandbox = Sandbox::new();
    printed(&sandbox, "mkdir bin && cp \"$(command -v runai)\" bin/runai");
    let as_it_was = "cmp bin/runai \"$(command -v runai)\" && test \"$(ls -A bin)\" = runai";
    let upgrade = |port: u16| format!("RUNAI_CP_URL=http://127.0.0.1:{port} bin/runai upgrade");
    let refused = sandbox.shell(&upgrade(hands_out(PROGRAM, PROGRAM.len())));
    assert_eq!(refused.code, Some(1), "{}", refused.text);
    assert!(refused.text.contains("it ended with exit status: 3"), "{}", refused.text);
    printed(&sandbox, as_it_was);
    let waits = sandbox.begin(&upgrade(hands_out(PROGRAM, 2 * PROGRAM.len())));
    let begun = || sandbox.shell("ls -A bin | grep '^[.]runai'").code == Some(0);
    assert!(wait_until(begun));
    end(&sandbox, "bin/runai upgrade", Signal::TERM);
    assert_eq!(finish(waits).code, Some(143));
    printed(&sandbox, as_it_was);
}

#[test]
fn an_upgrade_puts_the_program_of_the_server_in_place() {
    let mut sandbox = Sandbox::new();
    sandbox.start_server("elastane up --gpus 1x1GiB");
    printed(&sandbox, "mkdir bin && cp \"$(command -v runai)\" bin/runai && echo x >> bin/runai");
    let done = printed(&sandbox, "bin/runai upgrade");
    assert!(done.contains("as http://127.0.0.1:"), "{done}");
    printed(&sandbox, "cmp bin/runai \"$(command -v runai)\" && test \"$(ls -A bin)\" = runai");
    assert!(printed(&sandbox, "bin/runai update").contains("hands out"));
}
