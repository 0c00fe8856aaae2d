//! Every published flag of a submission in its published forms (reference A.3 and B.3): taken,
//! refused because this version does not act on it, or refused because it is wrong.

use super::lines::{asked_of_server, meaning};

/// `runai submit j -i x …`.
const V1_TAKEN: &[&str] = &[
    "",
    "-g 1",
    "--gpu=0.5",
    "--gpu 2",
    "--gpu-memory 1G",
    "--gpu-memory=500M",
    "-g 0.25 --gpu-portion-limit 0.5",
    "--gpu-portion-request 0.25",
    "--gpu-memory-request 1G --gpu-memory-limit 2G",
    "--mig 1g.5gb",
    "--mig-profile 3g.20gb",
    "--cpu 0.5",
    "--cpu 500m",
    "--memory 1G",
    "--extended-resource nvidia.com/mig-1g.5gb=2",
    "-e A=b -e C=d=e",
    "--environment A=SECRET:cred,key",
    "--command -- python train.py",
    "--command 'python -u' --args 'train.py --x 1'",
    "--command=python",
    "-- --epochs 3",
    "--working-dir /tmp",
    "-a k=v --annotation l=w",
    "-l k=v --label l=w",
    "--interactive",
    "--interactive --preemptible",
    "--elastic -g 2",
    "--backoff-limit 3",
    "--backoffLimit 0",
    "--completions 4",
    "--completions 4 --parallelism 2",
    "--parallelism 1",
    "--node-type a100",
    "--node-pools 'a b'",
    "--node-pools a",
    "--toleration operator=Equal,key=k,value=v,effect=NoSchedule",
    "--toleration operator=Exists,key=k --toleration operator=Exists",
    "--toleration key=k,effect=PreferNoSchedule",
    "--preferred-pod-topology-key rack",
    "--required-pod-topology-key kubernetes.io/hostname",
    "--termination-grace-period 2m",
    "-p team-a",
    "--loglevel debug",
    "--image-pull-policy Always",
    "--always-pull-image",
    "--create-home-dir",
    "--add-capability NET_ADMIN",
    "--git-sync source=http://x,branch=main,target=/code",
    "--s3 bucket=b,target=/t",
    "--s3 bucket=b,accesskey=cred,url=http://s,target=/t",
    "--cpu-limit 1",
    "--memory-limit 1G",
    "--ttl-after-finish 5s",
    "--volume /a:/b:ro",
    "--volumes /a:/b",
    "--pvc :1G:/data:ro",
    "--pvc-exists claimname=c,path=/d",
    "--pvc-new claimname=c,size=1G,path=/d,accessmode-rwo",
    "--port 80:8080",
    "--port 8888 -s ingress",
    "--port 80:8888 -s ingress",
    "--port 80:8080 --service-type nodeport",
    "--port 80:8080 --service-type=LoadBalancer",
    "--interactive --service-type portforward --port 8080:80 --port 6006",
    "--interactive -s portforward --port 8080:80 --address 0.0.0.0",
    "-s portforward --port 8080:80",
    "--jupyter -g 1",
    "--jupyter -g 0.5 --service-type=ingress",
    "--inference --service-type nodeport --port 8888 -g 1",
    "--inference --port 8888 --replicas 4 -g 0.25",
    "--host-ipc",
    "--host-network",
    "--allow-privilege-escalation",
    "--prevent-privilege-escalation",
    "--large-shm",
    "--volume /a:/b:rw:nas",
    "--nfs-server h -v /a:/b",
    "-v /a:/b --mount-propagation",
    "--pvc claim:/d",
    "--port 8080",
    "--stdin",
    "--stdin -t",
    "--stdin --tty --attach",
    "--attach",
    "--dry-run",
    "--what-if",
];

/// Refused flags of `runai submit j -i x …`, with part of the message.
const V1_REFUSED: &[(&str, &str)] = &[
    ("--name k", "cannot be used with"),
    ("--job-name-prefix k", "cannot be used with"),
    ("-g 1.5", "use a value between 0 and 1 (0.5) or a whole count"),
    ("-g -1", "`-1` is negative"),
    ("-g 1 --mig-profile 1g.5gb", "cannot be used with"),
    ("--gpu-memory 1G --mig 1g.5gb", "cannot be used with"),
    ("-g 1 --gpu-memory 1G", "cannot be used with"),
    ("-g 0.2 --gpu-portion-limit 2", "at most 1"),
    ("-g 0.2 --gpu-portion-limit NaN", "`NaN` is not a number"),
    ("--gpu-memory 1G --gpu-portion-limit 0.5", "cannot be used with"),
    ("--cpu lots", "`lots` is not"),
    ("--memory lots", "`lots` is not a size"),
    ("-e A", "write a name, `=` and a value"),
    ("-e A=SECRET:", "write NAME=SECRET:CREDENTIAL,KEY"),
    ("--command", "write `--command -- COMMAND ARGS…`"),
    ("--command \"a 'b\"", "missing closing quote"),
    ("--interactive --elastic", "cannot be used with"),
    ("--interactive --completions 2", "cannot be used with"),
    ("--interactive --parallelism 2", "cannot be used with"),
    ("--elastic --parallelism 2", "cannot be used with"),
    ("--parallelism 2", "--parallelism needs --completions"),
    ("--completions 0", "write a whole number from 1 to"),
    ("--backoff-limit -3", "write a whole number from 0 to"),
    ("--node-pools ''", "write NAME,NAME, the best first"),
    ("--toleration operator=Like,key=k", "allowed are Equal and Exists"),
    ("--toleration value=v", "only with operator=Exists it may be left out"),
    ("--toleration operator=Exists,key=k,value=v", "goes with operator=Equal only"),
    ("--toleration key=k,effect=Never", "NoSchedule, NoExecute and PreferNoSchedule"),
    ("--toleration key=k,seconds=5", "leave out seconds"),
    ("--toleration key=k,kez=l", "`kez` is not known here"),
    ("--toleration key=k,key=l", "`key` is there twice"),
    ("--preferred-pod-topology-key a --required-pod-topology-key b", "cannot be used with"),
    ("--termination-grace-period soon", "write whole seconds, minutes, hours or days"),
    ("--workers 2", "unexpected argument '--workers'"),
    ("--volume /a", "write DIR:DIR"),
    ("--nfs-server h", "required arguments were not provided"),
    ("--mount-propagation", "required arguments were not provided"),
    ("--pvc /a", "write [CLASS]:SIZE:DIR"),
    ("--pvc :lots:/d", "`lots` is not a size"),
    ("--pvc-new claimname=c,path=/d,ro=maybe", "allowed are true and false"),
    ("--s3 bucket=b,key=k,secret=s,target=/t", "write accesskey=NAME"),
    ("--s3 bucket=b", "`path=…` is missing"),
    ("--git-sync branch=main", "`source=…` is missing"),
    ("--git-sync source=http://x,username=u,password=p", "make a credential of type password"),
    ("--port 0:80", "write a whole number from 1 to"),
    ("--port 80 -s cable", "possible values: portforward, nodeport, loadbalancer, clusterip"),
    ("-s ingress", "--service-type: say of which port, with --port EXTERNAL:INTERNAL"),
    ("--port 80 --address 0.0.0.0", "add --service-type portforward"),
    ("--jupyter --attach", "leave it out"),
    ("--jupyter --elastic", "cannot be used with"),
    ("--jupyter --inference --port 80", "cannot be used with"),
    ("--inference", "say at which port it answers, with one --port PORT"),
    ("--inference --port 80 --port 81", "with one --port PORT"),
    ("--replicas 2", "required arguments were not provided"),
    ("--ttl-after-finish soon", "write whole seconds, minutes, hours or days"),
    ("--inference --interactive --port 80", "cannot be used with"),
    ("--tty", "add --stdin"),
    ("--dry-run --what-if", "cannot be used with"),
    ("--dry-run --attach", "nothing would be submitted"),
    ("--what-if --attach", "nothing would be submitted"),
    ("--pod-running-timeout 5s", "required arguments were not provided"),
];

/// Flags of `runai submit j -i x …` that this version does not support.
const V1_LATER: &[&str] = &["--local-image", "--user me"];

/// Spellings of the second dialect.
const V1_NEWER: &[&str] = &[
    "--run-as-uid 1000 --run-as-gid 1000 --run-as-non-root --supplemental-groups 1113",
    "--existing-pvc claimname=scratch,path=/scratch",
    "--new-pvc claimname=s,size=1G,path=/s",
    "--nfs path=/a,server=s,mountpath=/b",
    "--host-path path=/a,mount=/b",
    "--empty-dir-volume path=/p",
    "--configmap-map-volume name=n,path=/p",
    "--node-pool a --node-pool b",
    "--gpu-devices-request 1 --cpu-core-request 1 --cpu-memory-request 1G",
    "--cpu-core-limit 1 --cpu-memory-limit 1G",
    "--environment-variable A=b",
    "--capability SYS_PTRACE",
    "--auto-deletion-time-after-completion 5s",
];

/// Flags that change nothing, by the command that has them.
const IDLE: &[(&str, &str)] = &[
    ("submit j -i x", "--run-as-user"),
    ("submit-dist pytorch j -i x", "--run-as-user"),
    ("training submit j -i x", "--run-as-user"),
    ("workspace submit j -i x", "--wait-for-submit 1m"),
    ("training logs j", "--container=w"),
    ("training logs j", "--limit-bytes=10"),
    ("workload logs j", "--wait-timeout=30s"),
    ("workspace bash j", "--container c"),
    ("training pytorch attach j", "--container c"),
    ("workspace port-forward j --port 80", "--wait-timeout 5s"),
    ("training list", "--columns name,status"),
    ("workload list", "--page-size 5"),
    ("inference list", "--raw"),
    ("project list", "--raw"),
    ("version", "--wide"),
];

/// Flags of `submit-dist` and `submit-mpi` that this version does not support.
const TOGETHER_LATER: &[&str] = &[
    "--interactive",
    "--preemptible",
    "--elastic",
    "--parallelism 2",
    "--completions 2",
    "--inference",
    "--jupyter",
];

/// `runai training submit j -i x …`, and the same of a workspace where it says so.
const V2_TAKEN: &[&str] = &[
    "",
    "-g 1",
    "--gpu-devices-request 2",
    "--gpu-request-type portion --gpu-portion-request 0.5",
    "--gpu-portion-request 0.5 --gpu-portion-limit 0.8",
    "--gpu-memory-request 4G --gpu-memory-limit 8G",
    "-g 2 --gpu-request-type memory --gpu-memory-request 8G",
    "--extended-resource nvidia.com/mig-1g.10gb=1",
    "--cpu-core-request 0.5",
    "--cpu-memory-request 1G",
    "-c -- python train.py",
    "--command -- sleep 5",
    "-- --epochs 3",
    "--working-dir /tmp",
    "-e A=b",
    "--environment-variable A=b",
    "--environment A=b",
    "--env-secret name=A,secret=cred,key=k",
    "--secret-volume name=cred,path=/tmp/cred",
    "--annotation k=v",
    "--label k=v",
    "--backoff-limit 2",
    "--restart-policy OnFailure",
    "--termination-grace-period 30s",
    "--priority very-high",
    "--preemptibility non-preemptible",
    "--preemptible",
    "--node-pools a,b",
    "--node-type a100",
    "--toleration operator=Exists,key=k,effect=NoExecute",
    "--preferred-pod-topology-key rack",
    "--required-pod-topology-key rack",
    "-p team-a",
    "--image-pull-policy Always",
    "--create-home-dir",
    "--cpu-core-limit 1",
    "--cpu-memory-limit 1G",
    "--large-shm",
    "--auto-deletion-time-after-completion 5s",
    "--scheduling-gate data/ready --scheduling-gate approved",
    "--preemption-delay 10m --time-limit 8h",
    "--new-pvc claimname=c,size=1G,path=/d",
    "--existing-pvc claimname=c,path=/d",
    "--nfs path=/a,server=s,mountpath=/b",
    "--host-path path=/a,mount=/b",
    "--git-sync name=n,repository=r,path=/p",
    "--s3 name=n,bucket=b,path=/p,accesskey=cred,url=https://s",
    "--configmap-map-volume name=n,path=/p,subpath=k,default-mode=0400",
    "--empty-dir-volume path=/p",
    "--port service-type=nodeport,container=80",
    "--port service-type=external-url,container=80",
    "--external-url container=80",
    "--host-network",
    "--host-ipc",
    "--run-as-uid 1",
    "--run-as-gid 1",
    "--run-as-non-root",
    "--supplemental-groups 1",
    "--user-group-source fromTheImage",
    "--seccomp-profile RuntimeDefault",
    "--capability NET_ADMIN",
    "--privileged",
    "--allow-privilege-escalation",
    "--stdin",
    "--stdin -t",
    "--attach",
    "--attach --pod-running-timeout 5m",
    "--dry-run",
    "--what-if",
];

const V2_REFUSED: &[(&str, &str)] = &[
    ("-g 0.5", "--gpu-portion-request 0.5"),
    ("--gpu-request-type portion", "needs --gpu-portion-request"),
    ("--gpu-request-type memory", "needs --gpu-memory-request"),
    ("--gpu-request-type migProfile", "--extended-resource nvidia.com/mig-1g.10gb=1"),
    ("--gpu-portion-request 0", "a share is above 0 and at most 1"),
    ("--gpu-portion-request 0.5 --gpu-memory-request 1G", "cannot be used with"),
    ("-g 0 --gpu-portion-request 0.5", "--gpu-devices-request 0 asks for no device"),
    ("--command", "write `--command -- COMMAND ARGS…`"),
    ("--nfs path=/a,mountpath=/b", "`server=…` is missing"),
    ("--host-path path=/a", "`mount=…` is missing"),
    ("--empty-dir-volume medium=Memory", "`path=…` is missing"),
    ("--port external=80", "`container=…` is missing"),
    ("--port container=80,external=8080,service-type=external-url", "has no port outside"),
    ("--port container=80,service-type=cable", "service-type `cable`; allowed are nodeport"),
    ("--port container=80,service-type=portforward", "`portforward`; allowed are nodeport"),
    ("--external-url url=http://a", "`container=…` is missing"),
    ("--external-url container=0", "`0` is not a port"),
    ("--external-url container=80,authtype=all", "authtype: `all` is not allowed; public,"),
    ("--image-pull-policy Sometimes", "possible values: Always, IfNotPresent, Never"),
    ("--env-secret name=A,key=k", "`secret=…` is missing"),
    ("--secret-volume name=cred", "`path=…` is missing"),
    ("--restart-policy sometimes", "possible values: Always, Never, OnFailure"),
    ("--preemptibility maybe", "possible values: preemptible, non-preemptible"),
    ("--preemptible --preemptibility preemptible", "cannot be used with"),
    ("--name-prefix k", "cannot be used with"),
    ("--tty", "add --stdin"),
    ("--attach --pod-running-timeout soon", "write whole seconds, minutes, hours or days"),
    ("--datasource nfs", "`nfs` is not known here; write type=…,name=…"),
    ("--workers 2", "unexpected argument '--workers'"),
];

const V2_LATER: &[&str] = &[
    "--image-pull-my-credentials",
    "--image-pull-my-credentials mine",
    "--env-pod-field-ref name=A,path=b",
    "--env-my-credentials name=A",
    "--datavolume name=n",
];

const TRAINING_TAKEN: &[&str] = &["--runs 4", "--runs 4 --parallelism 2", "--elastic -g 2"];

const DISTRIBUTED_TAKEN: &[&str] = &[
    "--workers 3",
    "--clean-pod-policy Running",
    "--clean-pod-policy all",
    "--no-master",
    "--master-command 'python lead.py' --master-args '--x 1'",
    "--master-gpu-devices-request 0",
    "--master-gpu-request-type portion --master-gpu-portion-request 0.5",
    "--master-gpu-portion-request 0.5 --master-gpu-portion-limit 0.8",
    "--master-gpu-memory-request 4G --master-gpu-memory-limit 8G",
    "--master-gpu-memory-request 8G",
    "--master-extended-resource nvidia.com/mig-1g.10gb=1",
    "--master-cpu-core-request 0.5 --master-cpu-memory-request 1G",
    "--master-environment-variable A=b",
    "--master-restart-policy OnFailure",
    "--master-no-pvcs",
    "--master-no-pvcs --new-pvc claimname=c,path=/c",
    "--master-cpu-core-limit 1",
    "--master-cpu-memory-limit 1G",
];

const LOGIN_LATER: &[&str] = &[
    "--additional-scope s",
    "--client-id c",
    "--idp-issuer-url https://i",
    "--redirect-server r",
    "--user u",
];

const INFERENCE_TAKEN: &[&str] = &[
    "--min-replicas 0",
    "--min-replicas 1 --max-replicas 3 --metric concurrency --metric-threshold 4",
    "--min-replicas 1 --max-replicas 3 --metric throughput --metric-threshold 4 \
     --metric-threshold-percentage 80",
    "--min-replicas 0 --initial-replicas 1 --activation-replicas 1",
    "--concurrency-hard-limit 0",
    "--scale-down-delay-seconds 60 --scale-to-zero-retention-seconds 0",
    "--initialization-timeout-seconds 30",
];

const INFERENCE_LATER: &[&str] = &["--stdin", "--tty", "--attach", "--pod-running-timeout 5s"];

const INFERENCE_REFUSED: &[(&str, &str)] = &[
    ("--serving-port 0", "`0` is not a port; write a whole number from 1 to 65535"),
    ("--serving-port 70000", "`70000` is not a port"),
    ("--serving-port container=80,protocol=smtp", "protocol `smtp`; allowed are http, grpc"),
    ("--serving-port container=80,authorization-type=x", "allowed are public, authenticatedUsers"),
    ("--serving-port container=80,cluster-local-access-only=x", "allowed are true and false"),
    ("--max-replicas 0", "write a whole number from 1 to"),
    ("--metric-threshold-percentage 0", "write a whole number from 1 to 100"),
    ("--backoff-limit 3", "unexpected argument '--backoff-limit'"),
    ("--runs 3", "unexpected argument '--runs'"),
];

/// Checks that the parser and the server accept every entry of a table.
fn taken(head: &str, tails: &[&str]) {
    for tail in tails {
        let line = format!("runai {head} {tail}");
        let said = asked_of_server(&line);
        assert!(said.is_ok(), "{line}: {:?}", said.err());
    }
}

fn refused(head: &str, tails: &[(&str, &str)]) {
    for (tail, said) in tails {
        let line = format!("runai {head} {tail}");
        let text = meaning(&line).expect_err(&line);
        assert!(text.contains(said), "{line}\n{text}");
        let (command, _) = head.split_once(" j").unwrap_or((head, ""));
        assert!(!text.contains("Usage:") || text.contains(&format!("Usage: runai {command}")));
    }
}

/// Checks that an unsupported flag is refused with a reason, and is not supported as well.
fn later(head: &str, tails: &[&str]) {
    for tail in tails {
        let flag = tail.split([' ', '=']).next().unwrap();
        refused(head, &[(tail, &format!("{flag} is not supported yet: "))]);
    }
}

#[test]
fn the_first_dialect_takes_what_is_published() {
    taken("submit j -i x", V1_TAKEN);
    refused("submit j -i x", V1_REFUSED);
    taken("submit j -i x", V1_NEWER);
    later("submit j -i x", V1_LATER);
    later("submit-dist tf j -i x", V1_LATER);
    later("submit-mpi j -i x", TOGETHER_LATER);
    later("login", LOGIN_LATER);
    taken("submit", &["-i x", "--name k -i x", "--job-name-prefix k -i x"]);
}

#[test]
fn the_first_dialect_takes_distributed_jobs() {
    for framework in ["mpi", "pytorch", "tf", "xgboost"] {
        let head = format!("submit-dist {framework} j -i x");
        taken(&head, &["", "--workers 2", "--clean-pod-policy None", "-g 0.5 -- --epochs 3"]);
    }
    taken("submit-dist pytorch j -i x", &["--workers 2 --min-replicas 1 --max-replicas 3"]);
    taken("submit-dist mpi j -i x", &["--workers 2 --slots-per-worker 4 -g 1"]);
    taken("submit-mpi j -i x", &["--processes 4 -g 1"]);
    taken("mj j -i x", &["--processes=4 --command 'mpirun -np 4 train'"]);
    refused("submit-mpi j -i x", &[("--processes 0", "write a whole number from 1 to")]);
    refused("submit-dist tf j -i x", &[("--slots-per-worker 4", "unexpected argument")]);
}

#[test]
fn the_second_dialect_takes_what_is_published() {
    let head = "training submit j -i x";
    taken(head, V2_TAKEN);
    taken(head, TRAINING_TAKEN);
    refused(head, V2_REFUSED);
    later(head, V2_LATER);
    taken("training standard submit j -i x", TRAINING_TAKEN);
    taken("workspace submit j -i x", V2_TAKEN);
    later("workspace submit j -i x", V2_LATER);
    refused("workspace submit j -i x", &[("--runs 3", "unexpected"), ("--parallelism 2", "")]);
    taken("training submit", &["-i x", "--name-prefix k -i x"]);
    taken("workspace submit", &["-i x --node-pools a --node-pools b,c"]);
    refused("training submit j -i x", &[("--elastic --runs 3", "cannot be used with")]);
}

#[test]
fn the_second_dialect_takes_distributed_trainings() {
    for noun in ["pytorch", "tensorflow", "xgboost", "jax"] {
        let head = format!("training {noun} submit j -i x");
        taken(&head, DISTRIBUTED_TAKEN);
        taken(&format!("{noun} submit j -i x"), &["--workers 2"]);
    }
    taken("training pytorch submit j -i x", &["--workers 2 --min-replicas 1 --max-replicas 3"]);
    taken("training pytorch submit j -i x", V2_TAKEN);
    later("training pytorch submit j -i x", V2_LATER);
    taken("training tf submit j -i x", &["--workers 2"]);
    taken("training mpi submit j -i x", &["--workers 2 --slots-per-worker 4"]);
    for framework in ["PyTorch", "MPI", "TF", "XGBoost"] {
        taken(&format!("distributed submit j -i x -f {framework}"), &["--workers 2"]);
    }
    let oldest = |framework: &str| format!("distributed submit j -i x -f {framework}");
    taken(&oldest("MPI"), &["--workers 2 --slots-per-worker 4"]);
    taken(&oldest("PyTorch"), &["--min-replicas 1 --max-replicas 3 --workers 2"]);
    refused(
        &oldest("TF"),
        &[("--max-replicas 3", "only PyTorch"), ("--slots-per-worker 4", "MPI")],
    );
    let wrong = [
        ("--workers 0", "write a whole number from 1 to"),
        ("--clean-pod-policy Some", "possible values: Running, All, None"),
        ("--no-master --master-args x", "cannot be used with"),
        ("--master-gpu-request-type portion", "needs --master-gpu-portion-request"),
        ("--runs 3", "unexpected argument '--runs'"),
    ];
    refused("training tensorflow submit j -i x", &wrong);
    refused("training mpi submit j -i x", &[("--no-master", "MPI needs its launcher")]);
}

#[test]
fn the_second_dialect_takes_inferences() {
    let head = "inference submit j -i x --serving-port 80";
    let ends = |tail: &&str| {
        let those = [
            "--backoff",
            "--restart",
            "--auto-deletion",
            "--stdin",
            "--attach",
            "--scheduling-gate",
            "--preemption-delay",
        ];
        let open = ["--external-url", "--port service-type=external-url"];
        those.iter().chain(&open).any(|flag| tail.starts_with(flag))
    };
    taken(head, &V2_TAKEN.iter().copied().filter(|tail| !ends(tail)).collect::<Vec<_>>());
    taken(head, INFERENCE_TAKEN);
    taken(
        "inference submit j -i x",
        &[
            "--serving-port container=80",
            "--serving-port container=80,protocol=http,authorization-type=authorizedUsers,\
             authorized-users=a:b,cluster-local-access-only",
        ],
    );
    later(head, V2_LATER);
    later(head, INFERENCE_LATER);
    refused("inference submit j -i x", INFERENCE_REFUSED);
    refused("inference update j", &[("", "say what to change, such as --max-replicas 3")]);
    refused("inference update j", &[("--template t", "unexpected argument '--template'")]);
}

#[test]
fn an_update_takes_what_can_change_and_names_what_cannot() {
    for of in ["training", "training pytorch", "mpi", "workspace"] {
        let head = format!("{of} update j");
        let flags = ["--priority high --verbose", "--backoff-limit 0", "--label a-"];
        for flag in flags {
            let said = meaning(&format!("runai {head} {flag}"));
            assert!(said.is_ok(), "{head} {flag}: {said:?}");
        }
        let fixed = |flag: &str| format!("{flag} cannot change while the workload exists");
        for (tail, flag) in [("-i x", "--image"), ("-g 2", "--gpu-devices-request")] {
            refused(&head, &[(tail, fixed(flag).as_str())]);
        }
        refused(&head, &[("--node-pools a", fixed("--node-pools").as_str())]);
        refused(&head, &[("", "specify what to change, such as --priority high")]);
        refused(&head, &[("--label a", "write KEY=VALUE to set it, or KEY- to remove it")]);
    }
}

#[test]
fn one_note_names_all_flags_of_a_line_that_change_nothing() {
    let note = |line: &str| {
        let argv = line.split(' ').map(Into::into).collect();
        crate::understood(argv).map(|read| (read.intent, read.note)).unwrap()
    };
    for (head, tail) in IDLE {
        let (with, said) = note(&format!("runai {head} {tail}"));
        let (without, nothing) = note(&format!("runai {head}"));
        // A submission keeps its command line.
        if !head.contains("submit") {
            assert_eq!(with, without, "{head} {tail}");
        }
        let flag = tail.split([' ', '=']).next().unwrap();
        assert!(said.is_some_and(|note| note.contains(&format!("{flag} ("))), "{head} {tail}");
        assert_eq!(nothing, None, "{head}");
    }
    let (_, said) = note("runai training exec --container c --wait-timeout=5s j -- ls --container");
    let said = said.unwrap();
    assert!(said.contains("--container (") && said.contains("--wait-timeout ("), "{said}");
}

#[test]
fn an_id_stands_for_the_name_in_every_command_about_a_workload() {
    let id = "0b0d5ad1-6c39-4b43-8ba0-b06dd9fa8a9b";
    for (head, tail) in [
        ("training describe", ""),
        ("training standard suspend", ""),
        ("workspace delete", "--yes"),
        ("workload resume", ""),
        ("training pytorch logs", "--tail 3"),
        ("inference bash", ""),
        ("tf attach", ""),
        ("workload exec", "-i -- sh --uuid=x"),
        ("workspace port-forward", "--port 80"),
        ("workload update", "--priority high"),
        ("training explain", ""),
        ("training wait", "--for running"),
        ("inference standard describe", ""),
    ] {
        let of = |way: &str| meaning(format!("runai {head} {way}{id} {tail}").trim_end());
        let plain = of("").unwrap();
        assert_eq!(of("--uuid=").as_ref(), Ok(&plain), "{head}");
        assert_eq!(of("--uuid ").as_ref(), Ok(&plain), "{head}");
    }
    assert!(meaning("runai training describe --uuid").unwrap_err().contains("required"));
}

#[test]
fn published_words_of_the_second_dialect_are_known() {
    for (line, same) in [
        ("inference standard list", "inference list"),
        ("workload list --max-items 5", "workload list --limit 5"),
        ("auth get-token --output plaintext", "auth token"),
        ("config describe --json", "config describe -o json"),
        ("diagnostics collect-logs", "diagnostics"),
        (
            "login access-key --client-id c --client-secret s",
            "login application --name c --secret s",
        ),
    ] {
        let of = |line: &str| meaning(&format!("runai {line}")).unwrap();
        assert_eq!(of(line), of(same), "{line}");
    }
    let refused = meaning("runai project create x --resources nodepool=default").unwrap();
    let text = format!("{refused:?}");
    assert!(text.contains("elastane project create"), "{text}");
    later("training list", &["--deleted"]);
}

#[test]
fn the_page_names_every_flag_that_is_not_acted_on() {
    let page = include_str!("../../../../docs/reference/cli.md");
    let first = V1_LATER.iter().chain(TOGETHER_LATER);
    let submits = first.chain(V2_LATER).chain(INFERENCE_LATER);
    for tail in submits.chain(LOGIN_LATER) {
        let flag = tail.split([' ', '=']).next().unwrap();
        assert!(page.contains(&format!("`{flag}`")), "{flag}");
    }
    for (_, tail) in IDLE {
        let flag = tail.split([' ', '=']).next().unwrap();
        assert!(page.contains(&format!("`{flag}`")), "{flag}");
    }
}

#[test]
fn what_a_submission_inherits_is_not_for_what_if() {
    for tail in ["--template t", "--environment e", "--compute c", "--datasource name=d"] {
        let line = format!("runai training submit j -i x {tail}");
        assert!(meaning(&line).is_ok(), "{line}");
        let said = asked_of_server(&line).unwrap_err().to_string();
        assert!(said.contains("templates and assets are the server's"), "{said}");
    }
}

/// Adds the words before each `update` command below this one.
fn updates(command: &clap::Command, words: &mut Vec<String>, found: &mut Vec<String>) {
    for below in command.get_subcommands() {
        words.push(below.get_name().to_owned());
        if below.get_name() == "update" && words.len() > 1 {
            found.push(words.join(" "));
        }
        updates(below, words, found);
        words.pop();
    }
}

#[test]
fn every_update_without_values_names_what_can_be_given() {
    let mut found = Vec::new();
    updates(&crate::tree(), &mut Vec::new(), &mut found);
    assert!(found.len() >= 4, "{found:?}");
    for line in found {
        let said = meaning(&format!("runai {line} j")).unwrap_err();
        assert!(said.contains("--"), "{line}: {said}");
    }
}
