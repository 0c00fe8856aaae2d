//! Pods that work together. Owns: the variables by which the pods of each framework find each other
//! (reference E.1; the names are those of the Kubeflow training operator). Does not know about: the
//! address of a pod, and when pods are started.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use uuid::Uuid;

use crate::{Framework, MASTER, PARAMETER_SERVER, PodSet, WORKER, WorkloadSpec};

/// Path of the token by which the pods of an elastic training authenticate each other.
pub const JOB_TOKEN_FILE: &str = "/run/elastane/job-token";
/// Variable that holds this path in a run.
pub const JOB_TOKEN_VARIABLE: &str = "ELASTANE_JOB_TOKEN_FILE";
/// Variable by which the pods of an elastic training encrypt their traffic, if its value is `true`.
pub const JOB_TLS_VARIABLE: &str = "ELASTANE_JOB_TLS";

/// Program that runs the master and the parameter servers of an elastic training. An engine
/// provides the program of its server, so the image needs none.
pub const JOB_PROGRAM: &str = "elasticdl";

/// Prefix of the variables that `torchrun` reads as options absent from its command line.
const TORCHRUN: &str = "PET_";
/// Variable of the rank, which differs from pod to pod where ranks are fixed: `-e` sets one value
/// for all.
const TORCHRUN_RANK: &str = "PET_NODE_RANK";
/// Variable of the rendezvous backend, and its value for a rendezvous at the server.
pub const TORCHRUN_MEETING: (&str, &str) = ("PET_RDZV_BACKEND", "elastane");
/// Variable of a rendezvous backend that the image may have. Its value replaces the default,
/// PyTorch's own: the server cannot know the packages of an image.
const TORCHRUN_PREFERRED: &str = "ELASTANE_RDZV_BACKEND";
/// Variables by which a user chooses a rendezvous.
const TORCHRUN_CHOICE: [&str; 3] = [TORCHRUN_MEETING.0, "PET_RDZV_ENDPOINT", "PET_RDZV_ID"];
/// Maximum restarts of processes by `torchrun` where workers come and go. It counts the loss of a
/// worker like an error of the script, so the number allows for many preemptions.
const ELASTIC_RESTARTS: &str = "100";
/// How long `torchrun` waits for more workers when the minimum has joined, in seconds.
const LAST_CALL_S: u32 = 5;

/// The pods a run works together with, itself included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gang {
    /// Id of their workload.
    pub workload: Uuid,
    /// Framework whose variables they get.
    pub framework: Framework,
    /// All pods, by rank: the others connect to the first.
    pub members: Vec<Member>,
    /// Rank of this pod, an index into `members`.
    pub rank: usize,
    /// Minimum number of members that can work.
    pub members_min: u32,
    /// MPI ranks in each worker.
    pub slots_per_worker: u32,
    /// True if its pods may rendezvous at the server where their image can.
    pub may_meet_at_server: bool,
}

/// A pod of a gang.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// `master`, `ps` or `worker`.
    pub role: String,
    /// Index among the members of its role.
    pub index: u32,
    /// Name of its node; empty while it has none.
    pub node: String,
    /// Port that is unique among all pods that can be on one machine.
    pub port: u16,
}

impl WorkloadSpec {
    /// True if its pods rendezvous at the server, so that the others continue without any one of
    /// them, the first included.
    #[must_use]
    pub fn meets_at_server(&self) -> bool {
        let (name, value) = TORCHRUN_MEETING;
        let is_spare = self.sets().any(|set| set.pods_min < set.pods);
        let meets = |set: &PodSet| set.pod.env.get(name).is_some_and(|set| set == value);
        self.distributed.is_some_and(|together| together.framework == Framework::PyTorch)
            && is_spare
            && self.sets().all(meets)
    }

    /// True if its pods may rendezvous at the server where their image can: the user has chosen no
    /// rendezvous, and all pods have one image, so that all decide alike.
    #[must_use]
    pub fn may_meet_at_server(&self) -> bool {
        let is_free =
            |set: &PodSet| TORCHRUN_CHOICE.iter().all(|name| !set.pod.env.contains_key(*name));
        let is_alike = |set: &PodSet| set.pod.image == self.pods.pod.image;
        self.sets().all(|set| is_free(set) && is_alike(set))
    }
}

impl Gang {
    /// Adds the variables of this pod to its environment, by its framework's names. MPI needs the
    /// hostfile as well. Options of `torchrun` that the user has set stay, except for the rank; all
    /// other variables of the user with these names are replaced.
    pub fn complete(
        &self,
        env: &mut BTreeMap<String, String>,
        address: &dyn Fn(&Member) -> String,
        gpus: usize,
    ) {
        self.fill(env.values_mut(), address);
        for (name, value) in self.environment(address, gpus) {
            if name.starts_with(TORCHRUN) && name != TORCHRUN_RANK {
                env.entry(name.to_owned()).or_insert(value);
            } else {
                env.insert(name.to_owned(), value);
            }
        }
    }

    /// Replaces `$(NAME)` of its variables in commands, arguments and variables, as Kubernetes
    /// does: published manifests of a `LeaderWorkerSet` rely on it.
    pub fn fill<'w>(
        &self,
        words: impl IntoIterator<Item = &'w mut String>,
        address: &dyn Fn(&Member) -> String,
    ) {
        if self.framework != Framework::Lws {
            return;
        }
        let told = self.environment(address, 0);
        for word in words {
            for (name, value) in &told {
                *word = word.replace(&format!("$({name})"), value);
            }
        }
    }

    fn environment(
        &self,
        address: &dyn Fn(&Member) -> String,
        gpus: usize,
    ) -> Vec<(&'static str, String)> {
        let Some(first) = self.members.first() else { return Vec::new() };
        let (host, port) = (address(first), first.port.to_string());
        let (rank, size) = (self.rank.to_string(), self.members.len().to_string());
        let unbuffered = ("PYTHONUNBUFFERED", "1".to_owned());
        let meeting = [
            ("MASTER_ADDR", host.clone()),
            ("MASTER_PORT", port.clone()),
            ("RANK", rank.clone()),
            ("WORLD_SIZE", size.clone()),
        ];
        match self.framework {
            Framework::PyTorch => {
                let torchrun = self.torchrun(address, &host, &port, gpus);
                meeting.into_iter().chain(torchrun).chain([unbuffered]).collect()
            }
            Framework::XgBoost => {
                let workers: Vec<_> = self.workers().map(address).collect();
                let own = self.members.get(self.rank).map_or(0, |own| own.port);
                let rabit = [
                    ("WORKER_ADDRS", workers.join(",")),
                    ("WORKER_PORT", own.to_string()),
                    unbuffered,
                ];
                meeting.into_iter().chain(rabit).collect()
            }
            Framework::Jax => vec![
                ("COORDINATOR_ADDRESS", host),
                ("COORDINATOR_PORT", port),
                ("NUM_PROCESSES", size),
                ("PROCESS_ID", rank),
                unbuffered,
            ],
            Framework::Tf => vec![("TF_CONFIG", self.tf_config(address))],
            Framework::Lws => vec![
                ("LWS_LEADER_ADDRESS", host),
                ("LWS_LEADER_PORT", port),
                ("LWS_GROUP_SIZE", size),
                ("LWS_WORKER_INDEX", rank),
            ],
            Framework::ElasticDl => self.elastic(format!("{host}:{port}"), address),
            Framework::Mpi => vec![("OMPI_MCA_orte_keep_fqdn_hostnames", "true".to_owned())],
        }
    }

    /// The options of `torchrun`. Where workers come and go they rendezvous in a store of the first
    /// pod, and ranks may differ each time; else a pod keeps its rank.
    fn torchrun(
        &self,
        address: &dyn Fn(&Member) -> String,
        host: &str,
        port: &str,
        gpus: usize,
    ) -> Vec<(&'static str, String)> {
        let (size, is_host) = (self.members.len(), u8::from(self.rank == 0));
        let own = self.members.get(self.rank).map_or_else(|| host.to_owned(), address);
        let mut options = vec![
            ("PET_NNODES", size.to_string()),
            (TORCHRUN_RANK, self.rank.to_string()),
            ("PET_NPROC_PER_NODE", gpus.max(1).to_string()),
            ("PET_MASTER_ADDR", host.to_owned()),
            ("PET_MASTER_PORT", port.to_owned()),
            ("PET_LOCAL_ADDR", own),
        ];
        if (self.members_min as usize) < size {
            options[0].1 = format!("{}:{size}", self.members_min);
            // On one machine `torchrun` would take each of the pods for the host.
            let settings = format!("is_host={is_host},last_call_timeout={LAST_CALL_S}");
            options.extend([
                (TORCHRUN_MEETING.0, "c10d".to_owned()),
                ("PET_RDZV_ENDPOINT", format!("{host}:{port}")),
                ("PET_RDZV_ID", self.workload.to_string()),
                ("PET_RDZV_CONF", settings),
                ("PET_MAX_RESTARTS", ELASTIC_RESTARTS.to_owned()),
            ]);
            if self.may_meet_at_server {
                options.push((TORCHRUN_PREFERRED, TORCHRUN_MEETING.1.to_owned()));
            }
        }
        options
    }

    /// Variables from which MPI reads the path of its hostfile.
    pub const HOSTFILE_NAMES: [&'static str; 3] =
        ["OMPI_MCA_orte_default_hostfile", "HYDRA_HOST_FILE", "I_MPI_HYDRA_HOST_FILE"];

    /// The hostfile that MPI needs: each worker with its slots.
    #[must_use]
    pub fn hostfile(&self, address: &dyn Fn(&Member) -> String) -> Option<String> {
        if self.framework != Framework::Mpi {
            return None;
        }
        let mut lines = String::new();
        for worker in self.workers() {
            // Writing to a string does not fail.
            let _ = writeln!(lines, "{} slots={}", address(worker), self.slots_per_worker);
        }
        Some(lines)
    }

    /// Variables of an elastic training: address of the master, number of workers, and this pod's
    /// index, address or port.
    fn elastic(
        &self,
        master: String,
        address: &dyn Fn(&Member) -> String,
    ) -> Vec<(&'static str, String)> {
        let count = self.workers().count().to_string();
        let unbuffered = ("PYTHONUNBUFFERED", "1".to_owned());
        let mut told = vec![("MASTER_ADDR", master), ("WORKER_NUM", count), unbuffered];
        let Some(own) = self.members.get(self.rank) else { return told };
        match own.role.as_str() {
            // Workers that add up their gradients connect to each other.
            WORKER => {
                told.extend([("WORKER_ID", own.index.to_string()), ("MY_POD_IP", address(own))]);
            }
            PARAMETER_SERVER => told.extend([
                ("PS_ID", own.index.to_string()),
                ("PS_ADDR", format!("{}:{}", address(own), own.port)),
            ]),
            _ => told.push(("PORT", own.port.to_string())),
        }
        told
    }

    /// True if this pod runs [`JOB_PROGRAM`].
    #[must_use]
    pub fn runs_job_program(&self) -> bool {
        let is_led = self.members.get(self.rank).is_some_and(|own| own.role != WORKER);
        self.framework == Framework::ElasticDl && is_led
    }

    fn workers(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(|member| member.role == WORKER)
    }

    /// `TF_CONFIG` as JSON. TensorFlow calls the master chief. Addresses and roles need no quoting
    /// in JSON.
    fn tf_config(&self, address: &dyn Fn(&Member) -> String) -> String {
        let name = |role: &str| if role == MASTER { "chief" } else { "worker" };
        let of = |role: &'static str| {
            let members = self.members.iter().filter(move |member| member.role == role);
            let hosts: Vec<_> = members.map(|m| format!("\"{}:{}\"", address(m), m.port)).collect();
            (!hosts.is_empty()).then(|| format!("\"{}\":[{}]", name(role), hosts.join(",")))
        };
        let cluster: Vec<_> = [of(MASTER), of(WORKER)].into_iter().flatten().collect();
        let own = self.members.get(self.rank);
        let (role, index) = own.map_or(("worker", 0), |own| (name(&own.role), own.index));
        format!(
            "{{\"cluster\":{{{}}},\"task\":{{\"type\":\"{role}\",\"index\":{index}}},\
             \"environment\":\"cloud\"}}",
            cluster.join(",")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(framework: Framework, rank: usize, members_min: u32) -> String {
        let member = |role: &str, index, port| Member {
            role: role.to_owned(),
            index,
            node: String::new(),
            port,
        };
        let members =
            vec![member(MASTER, 0, 7000), member(WORKER, 0, 7001), member(WORKER, 1, 7002)];
        let workload = Uuid::from_u128(5);
        let gang = Gang {
            workload,
            framework,
            members,
            rank,
            members_min,
            slots_per_worker: 2,
            may_meet_at_server: true,
        };
        let here = |_: &Member| "127.0.0.1".to_owned();
        let mut told: Vec<_> = gang
            .environment(&here, 1)
            .into_iter()
            .filter(|(name, _)| *name != "PYTHONUNBUFFERED")
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        told.extend(gang.hostfile(&here));
        told.join(" ")
    }

    #[test]
    fn each_framework_is_told_in_its_own_words() {
        for (framework, rank, least, want) in [
            (
                Framework::PyTorch,
                2,
                3,
                "MASTER_ADDR=127.0.0.1 MASTER_PORT=7000 RANK=2 WORLD_SIZE=3 PET_NNODES=3 \
                 PET_NODE_RANK=2 PET_NPROC_PER_NODE=1 PET_MASTER_ADDR=127.0.0.1 \
                 PET_MASTER_PORT=7000 PET_LOCAL_ADDR=127.0.0.1",
            ),
            (
                Framework::XgBoost,
                1,
                3,
                "MASTER_ADDR=127.0.0.1 MASTER_PORT=7000 RANK=1 WORLD_SIZE=3 \
                 WORKER_ADDRS=127.0.0.1,127.0.0.1 WORKER_PORT=7001",
            ),
            (
                Framework::Jax,
                0,
                3,
                "COORDINATOR_ADDRESS=127.0.0.1 COORDINATOR_PORT=7000 NUM_PROCESSES=3 PROCESS_ID=0",
            ),
            (
                Framework::Tf,
                2,
                3,
                "TF_CONFIG={\"cluster\":{\"chief\":[\"127.0.0.1:7000\"],\"worker\":\
                 [\"127.0.0.1:7001\",\"127.0.0.1:7002\"]},\"task\":{\"type\":\"worker\",\
                 \"index\":1},\"environment\":\"cloud\"}",
            ),
            (
                Framework::Mpi,
                0,
                3,
                "OMPI_MCA_orte_keep_fqdn_hostnames=true 127.0.0.1 slots=2\n127.0.0.1 slots=2\n",
            ),
            (
                Framework::Lws,
                2,
                3,
                "LWS_LEADER_ADDRESS=127.0.0.1 LWS_LEADER_PORT=7000 LWS_GROUP_SIZE=3 \
                 LWS_WORKER_INDEX=2",
            ),
        ] {
            assert_eq!(told(framework, rank, least), want);
        }
        let at = "MASTER_ADDR=127.0.0.1:7000 WORKER_NUM=2";
        assert_eq!(told(Framework::ElasticDl, 0, 1), format!("{at} PORT=7000"));
        assert_eq!(
            told(Framework::ElasticDl, 2, 1),
            format!("{at} WORKER_ID=1 MY_POD_IP=127.0.0.1")
        );
        let elastic = told(Framework::PyTorch, 0, 2);
        for part in [
            "PET_NNODES=2:3 ",
            "PET_RDZV_BACKEND=c10d PET_RDZV_ENDPOINT=127.0.0.1:7000 ",
            "PET_RDZV_ID=00000000-0000-0000-0000-000000000005 ",
            "PET_MAX_RESTARTS=100 ELASTANE_RDZV_BACKEND=elastane",
            "PET_RDZV_CONF=is_host=1,",
        ] {
            assert!(elastic.contains(part), "{part} lacks in {elastic}");
        }
    }

    #[test]
    fn a_group_finds_its_variables_in_commands_and_in_variables_of_the_user() {
        let member = Member { role: WORKER.to_owned(), index: 0, node: String::new(), port: 7000 };
        let mut gang = Gang {
            workload: Uuid::nil(),
            framework: Framework::Lws,
            members: vec![member],
            rank: 0,
            members_min: 1,
            slots_per_worker: 1,
            may_meet_at_server: false,
        };
        let (here, text) = (|_: &Member| "here".to_owned(), "$(LWS_LEADER_ADDRESS):1 $(OTHER)");
        let (mut env, mut words) = ([("AT".to_owned(), text.to_owned())].into(), [text.to_owned()]);
        gang.fill(&mut words, &here);
        gang.complete(&mut env, &here, 0);
        assert_eq!((&*words[0], &*env["AT"]), ("here:1 $(OTHER)", "here:1 $(OTHER)"));
        gang.framework = Framework::PyTorch;
        let mut words = [text.to_owned()];
        gang.fill(&mut words, &here);
        assert_eq!(words[0], text);
    }

    #[test]
    fn options_of_the_user_stay_and_ranks_do_not() {
        let member = Member { role: MASTER.to_owned(), index: 0, node: String::new(), port: 7000 };
        let gang = Gang {
            workload: Uuid::nil(),
            framework: Framework::PyTorch,
            members: vec![member],
            rank: 0,
            members_min: 1,
            slots_per_worker: 1,
            may_meet_at_server: false,
        };
        let set = [("PET_NPROC_PER_NODE", "4"), ("RANK", "7"), ("PET_NODE_RANK", "7")];
        let mut env = set.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        gang.complete(&mut env, &|_: &Member| "here".to_owned(), 0);
        let found = ["PET_NPROC_PER_NODE", "RANK", "PET_NODE_RANK", "PET_MASTER_ADDR"];
        assert_eq!(found.map(|name| &*env[name]), ["4", "0", "0", "here"]);
    }

    #[test]
    fn a_parameter_server_knows_its_number_and_its_address() {
        let server =
            Member { role: PARAMETER_SERVER.to_owned(), index: 1, node: String::new(), port: 7009 };
        let gang = Gang {
            workload: Uuid::nil(),
            framework: Framework::ElasticDl,
            members: vec![server],
            rank: 0,
            members_min: 1,
            slots_per_worker: 1,
            may_meet_at_server: false,
        };
        let told = gang.environment(&|_: &Member| "here".to_owned(), 0);
        assert!(told.contains(&("PS_ID", "1".to_owned())), "{told:?}");
        assert!(told.contains(&("PS_ADDR", "here:7009".to_owned())), "{told:?}");
        assert!(gang.runs_job_program(), "and the engine brings its program");
    }
}
