//! From command lines to the bodies of requests.

use expect_test::{Expect, expect};

use super::lines::{asked_of_server, meaning, submit};
use crate::intent::Intent;
use crate::request;

/// Request body of a line, without the command line.
fn sent(line: &str) -> String {
    let mut request = request::creation(&submit(line), "n", "1".to_owned());
    if let Some(spec) = &mut request.spec {
        spec.command_line = None;
    }
    let mut body = serde_json::to_value(request).unwrap();
    body.as_object_mut().unwrap().retain(|key, _| key.contains("pec"));
    body.to_string()
}

fn check(line: &str, want: &Expect) {
    want.assert_eq(&sent(line));
}

#[test]
fn both_dialects_ask_for_the_same() {
    for (v1, v2) in [
        ("submit j -i x -g 2 --elastic", "training submit j -i x -g 2 --elastic"),
        ("submit j -i x -g 0.5", "training submit j -i x --gpu-portion-request 0.5"),
        ("submit j -i x --gpu-memory 1G", "workspace submit j -i x --gpu-memory-request 1G"),
        ("submit j -i x --node-pools 'a b'", "training submit j -i x --node-pools a,b"),
        (
            "submit j -i x --completions 4 --parallelism 2",
            "training submit j -i x --runs 4 --parallelism 2",
        ),
        (
            "submit j -i x --mig-profile 1g.5gb",
            "training submit j -i x --extended-resource nvidia.com/mig-1g.5gb=1",
        ),
        (
            "submit j -i x -e A=SECRET:c,k",
            "training submit j -i x --env-secret name=A,secret=c,key=k",
        ),
        (
            "submit-dist pytorch j -i x --workers 2 --min-replicas 1",
            "training pytorch submit j -i x --workers 2 --min-replicas 1",
        ),
        ("submit-dist tf j -i x --workers 2", "distributed submit j -i x -f TF --workers 2"),
        (
            "submit j -i x -v /a:/b --port 80:8080 --ttl-after-finish 2h --cpu-limit 2",
            "training submit j -i x --host-path path=/a,mount=/b,readwrite --port \
             container=8080,external=80 --auto-deletion-time-after-completion 2h --cpu-core-limit 2",
        ),
        (
            "submit j -i x -v /a:/b:ro:nas --pvc-new claimname=c,path=/c,size=1G",
            "training submit j -i x --nfs server=nas,path=/a,mountpath=/b,readonly \
             --new-pvc claimname=c,path=/c,size=1G",
        ),
        (
            "submit j -i x --prevent-privilege-escalation --always-pull-image --large-shm",
            "training submit j -i x --allow-privilege-escalation=false --image-pull-policy Always \
             --large-shm",
        ),
        (
            "submit j -i x -s ingress --port 8888",
            "training submit j -i x --port container=8888,service-type=external-url",
        ),
        (
            "submit --name j -i x --inference --service-type nodeport --port 8888 -g 1",
            "inference submit j -i x --serving-port container=8888,authorization-type=public -g 1",
        ),
        (
            "submit j -i x --inference -s nodeport --port 32717:8888 --replicas 4 -g 0.25",
            "inference submit j -i x --serving-port container=8888,authorization-type=public \
             --min-replicas 4 --gpu-portion-request 0.25",
        ),
        (
            "submit j -i x --inference --port 8888 -g 1",
            "inference submit j -i x --serving-port 8888 -g 1",
        ),
        (
            "submit j -i x --interactive --command -- start.sh --url=/",
            "workspace submit j -i x --command start.sh -- --url=/",
        ),
        ("submit-mpi j -i x --processes 2 -g 1", "mpi submit j -i x --workers 2 -g 1"),
        (
            "submit-dist mpi j -i x -g 1 --slots-per-worker 2 --command -- mpirun a",
            "training mpi submit j -i x -g 1 --slots-per-worker 2 -c -- mpirun a",
        ),
    ] {
        assert_eq!(sent(&format!("runai {v1}")), sent(&format!("runai {v2}")), "{v1}");
    }
}

#[test]
fn a_training_says_where_it_may_run() {
    check(
        "runai training submit j -i x --node-pools a,b --node-type t \
         --toleration key=k,value=v,effect=NoSchedule --required-pod-topology-key rack",
        &expect![[
            r#"{"spec":{"image":"x","nodePools":["a","b"],"nodeType":"t","podAffinity":{"key":"rack","type":"Required"},"tolerations":[{"effect":"NoSchedule","key":"k","operator":"Equal","value":"v"}]}}"#
        ]],
    );
}

#[test]
fn nodes_are_chosen_by_labels_and_left_out_by_name() {
    for submit in ["submit", "training submit"] {
        check(
            &format!(
                "runai {submit} j -i x --node-affinity zone=a,b --node-affinity disk=fast \
                 --exclude-node node-1"
            ),
            &expect![[
                r#"{"spec":{"image":"x","nodeAffinityRequired":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone","operator":"In","values":["a","b"]},{"key":"disk","operator":"In","values":["fast"]},{"key":"kubernetes.io/hostname","operator":"NotIn","values":["node-1"]}]}]}}}"#
            ]],
        );
    }
}

#[test]
fn a_training_says_what_is_around_it() {
    check(
        "runai training submit j -i x --empty-dir-volume path=/e,medium=Memory,size=1G --run-as-uid 7 \
         --existing-pvc claimname=c,path=/c,ro --secret-volume name=s,path=/s --create-home-dir",
        &expect![[
            r#"{"spec":{"createHomeDir":true,"image":"x","security":{"runAsUid":7},"storage":{"emptyDirVolume":[{"medium":"Memory","path":"/e","sizeLimit":"1G"}],"pvc":[{"claimName":"c","existingPvc":true,"path":"/c","readOnly":true}],"secretVolume":[{"mountPath":"/s","secret":"s"}]}}}"#
        ]],
    );
}

#[test]
fn a_workspace_says_what_is_opened_in_a_browser() {
    check(
        "runai workspace submit j -i x --external-url container=8888,name=lab,authusers=a:b",
        &expect![[
            r#"{"spec":{"exposedUrls":[{"authorizedUsers":["a","b"],"container":8888,"name":"lab"}],"image":"x"}}"#
        ]],
    );
}

#[test]
fn a_port_is_open_to_everyone_only_where_that_is_said() {
    check(
        "runai workspace submit j -i x --external-url container=80,authtype=public",
        &expect![[
            r#"{"spec":{"exposedUrls":[{"authorizationType":"public","container":80}],"image":"x"}}"#
        ]],
    );
}

#[test]
fn the_master_has_no_claims_where_it_is_said() {
    let line = "runai training pytorch submit j -i x --new-pvc claimname=c,path=/c --host-path \
                path=/h,mount=/h";
    let mounts = |line: &str| {
        let spec = asked_of_server(line).unwrap();
        spec.sets().map(|set| set.pod.container.mounts.len()).collect::<Vec<_>>()
    };
    assert_eq!(mounts(line), [2, 2]);
    assert_eq!(mounts(&format!("{line} --master-no-pvcs")), [1, 2]);
}

#[test]
fn the_master_has_limits_of_its_own() {
    check(
        "runai training pytorch submit j -i x --cpu-core-limit 1 --master-cpu-core-limit 2 \
         --master-cpu-memory-limit 1G",
        &expect![[
            r#"{"masterSpec":{"compute":{"cpuCoreLimit":2,"cpuMemoryLimit":"1G"}},"spec":{"compute":{"cpuCoreLimit":1},"distributedFramework":"PyTorch","image":"x"}}"#
        ]],
    );
}

#[test]
fn a_distributed_training_has_workers_and_a_master() {
    check(
        "runai training pytorch submit j -i x --workers 2 -g 1 --clean-pod-policy all \
         --master-gpu-devices-request 0 --master-command 'lead --all' --master-args '-v 1'",
        &expect![[
            r#"{"masterSpec":{"args":"-v 1","command":"lead --all","compute":{"gpuDevicesRequest":0}},"spec":{"cleanPodPolicy":"All","compute":{"gpuDevicesRequest":1},"distributedFramework":"PyTorch","image":"x","numWorkers":2}}"#
        ]],
    );
    check(
        "runai training jax submit j -i x --no-master",
        &expect![[
            r#"{"masterSpecSameAsWorker":false,"spec":{"distributedFramework":"JAX","image":"x"}}"#
        ]],
    );
}

#[test]
fn the_command_of_mpi_is_that_of_the_launcher_which_has_no_gpu() {
    check(
        "runai training mpi submit j -i x --workers 2 -g 1 -c -- mpirun -np 2 train",
        &expect![[
            r#"{"masterSpec":{"command":"mpirun -np 2 train","compute":{"gpuDevicesRequest":0}},"spec":{"command":"sleep infinity","compute":{"gpuDevicesRequest":1},"distributedFramework":"MPI","image":"x","numWorkers":2}}"#
        ]],
    );
    // Both flags were given, so each keeps its value.
    check(
        "runai training mpi submit j -i x --master-command mpirun --master-args train \
         --master-gpu-devices-request 1 -c -- sshd",
        &expect![[
            r#"{"masterSpec":{"args":"train","command":"mpirun","compute":{"gpuDevicesRequest":1}},"spec":{"command":"sshd","distributedFramework":"MPI","image":"x"}}"#
        ]],
    );
}

#[test]
fn an_inference_says_how_it_serves() {
    check(
        "runai inference submit j -i x --serving-port container=80,authorization-type=\
         authorizedUsers,authorized-users=a:b --min-replicas 0 --max-replicas 3 \
         --metric concurrency --metric-threshold 4 --initialization-timeout-seconds 30",
        &expect![[
            r#"{"spec":{"autoscaling":{"maxReplicas":3,"metric":"concurrency","metricThreshold":4,"minReplicas":0},"image":"x","servingConfiguration":{"initializationTimeoutSeconds":30},"servingPort":{"authorizationType":"authorizedUsers","authorizedUsers":["a","b"],"container":80}}}"#
        ]],
    );
}

#[test]
fn an_update_sends_only_what_changes() {
    let line = "runai inference update j --max-replicas 3 -e V=2";
    let Intent::Update(update) = meaning(line).unwrap() else { panic!("{line}") };
    let body = serde_json::to_string(&request::change(&update)).unwrap();
    expect![[r#"{"spec":{"environmentVariables":[{"name":"V","value":"2"}],"autoscaling":{"maxReplicas":3}}}"#]].assert_eq(&body);
}

#[test]
fn what_a_share_may_grow_to_and_when_it_starts_are_sent() {
    let line = "runai training submit j -i x --gpu-portion-request 0.25 --gpu-portion-limit 0.5 \
                --scheduling-gate a --scheduling-gate b --preemption-delay 10m --time-limit 8h";
    let body = sent(line);
    for part in [
        r#""gpuPortionRequest":0.25"#,
        r#""gpuPortionLimit":0.5"#,
        r#""schedulingGates":["a","b"]"#,
        r#""preemptionDelaySeconds":600"#,
        r#""timeLimitSeconds":28800"#,
    ] {
        assert!(body.contains(part), "{part}: {body}");
    }
    for (v1, v2) in [
        ("-g 0.25 --gpu-portion-limit 0.5", "--gpu-portion-request 0.25 --gpu-portion-limit 0.5"),
        ("--gpu-memory 4G --gpu-memory-limit 8G", "--gpu-memory-request 4G --gpu-memory-limit 8G"),
    ] {
        let first = sent(&format!("runai submit j -i x {v1}"));
        assert_eq!(first, sent(&format!("runai training submit j -i x {v2}")));
    }
    let timing = "submit j -i x --scheduling-gate a --preemption-delay 10m --time-limit 8h";
    assert_eq!(sent(&format!("runai {timing}")), sent(&format!("runai training {timing}")));
    let line = "runai training update j --scheduling-gate ''";
    let Intent::Update(update) = meaning(line).unwrap() else { panic!("{line}") };
    let body = serde_json::to_string(&request::change(&update)).unwrap();
    assert_eq!(body, r#"{"spec":{"schedulingGates":[]}}"#);
}

#[test]
fn an_update_changes_the_most_of_a_gpu() {
    for (flag, compute) in [
        ("--gpu-memory-limit 12GiB", r#"{"gpuMemoryLimit":"12GiB"}"#),
        ("--gpu-portion-limit 0.75", r#"{"gpuPortionLimit":0.75}"#),
    ] {
        for noun in ["training", "workspace", "workload"] {
            let line = format!("runai {noun} update j {flag}");
            let Intent::Update(update) = meaning(&line).unwrap() else { panic!("{line}") };
            let body = serde_json::to_string(&request::change(&update)).unwrap();
            assert_eq!(body, format!(r#"{{"spec":{{"compute":{compute}}}}}"#));
        }
    }
    let wrong = meaning("runai workload update j --gpu-portion-limit -1").unwrap_err();
    assert!(wrong.contains("-1"), "{wrong}");
}

#[test]
fn an_update_of_a_training_sets_and_removes() {
    let line = "runai training update j --priority high --preemptibility non-preemptible \
                --backoff-limit 2 --auto-deletion-time-after-completion 2h --label a=1 --label b-";
    let Intent::Update(update) = meaning(line).unwrap() else { panic!("{line}") };
    let body = serde_json::to_string(&request::change(&update)).unwrap();
    expect![[r#"{"spec":{"priorityClass":"high","preemptibility":"non-preemptible","backoffLimit":2,"labels":[{"name":"a","value":"1"},{"name":"b","value":"","exclude":true}],"autoDeletionTimeAfterCompletionSeconds":7200}}"#]].assert_eq(&body);
}
