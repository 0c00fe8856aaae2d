//! The state of a run from its inspected container. Owns: distinguishing ends. Pure, except for
//! the last line of a container whose program could not be started.

use std::net::IpAddr;

use bollard::models::{
    ContainerInspectResponse, ContainerState, ContainerStateStatusEnum as Status,
};
use engine::{Exit, RunPlace, RunState, environment};
use engine_fractions::Refusal;
use units::Instant;
use uuid::Uuid;

use crate::daemon::DaemonProperties;
use crate::names::WORKLOAD_ID_LABEL;

/// Exit codes above this are signals, as in shells.
const SIGNALS: i64 = 128;
const SIGNAL_MAX: i64 = 64;
const KILL: i64 = SIGNALS + 9;
/// Longest time from the first container that a stopping daemon ends to its own end, or to the
/// start of the next one where that comes at once. It waits 15 seconds for containers by default.
const SHUTDOWN_MS: u64 = 20_000;
/// Exit codes of `docker-init` and shells for a missing or invalid program.
pub(crate) const NOT_EXECUTABLE: [i32; 2] = [126, 127];

/// A container, as far as its run is concerned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Inspected {
    pub(crate) state: RunState,
    /// When its main process started, if it ever did.
    pub(crate) started_at: Option<Instant>,
    /// Where its ports are reached from this machine.
    pub(crate) address: Option<IpAddr>,
    /// The workload of the run.
    pub(crate) workload_id: Uuid,
    /// Node and GPUs of the run.
    pub(crate) place: Option<RunPlace>,
}

/// Reads an inspection. `now` replaces missing times.
pub(crate) fn inspect(
    container: &ContainerInspectResponse,
    facts: &DaemonProperties,
    now: Instant,
) -> Inspected {
    let none = ContainerState::default();
    let state = container.state.as_ref().unwrap_or(&none);
    let started_at = state.started_at.as_deref().and_then(instant);
    let finished_at = state.finished_at.as_deref().and_then(instant);
    let error = state.error.clone().filter(|error| !error.is_empty());
    let code = state.exit_code.unwrap_or_default();
    let ended = |exit| RunState::Exited { exit, at: finished_at.unwrap_or(now) };
    let seen = match state.status {
        Some(Status::RUNNING | Status::PAUSED | Status::RESTARTING) => RunState::Running {
            pid: state.pid.and_then(|pid| u32::try_from(pid).ok()).filter(|pid| *pid > 0),
            started_at: started_at.unwrap_or(now),
        },
        Some(Status::CREATED) | None if started_at.is_none() => match error {
            Some(error) => ended(Exit::CannotRun(plain(&error))),
            None => RunState::Starting,
        },
        _ => match (started_at, error) {
            (None, error) => ended(Exit::CannotRun(plain(&error.unwrap_or_default()))),
            (Some(started), _) if ended_by_daemon(started, finished_at, facts) => ended(Exit::Lost),
            _ if code == KILL && state.oom_killed == Some(true) => ended(Exit::OutOfMemory),
            _ => ended(exit(code)),
        },
    };
    Inspected {
        state: seen,
        started_at,
        address: address(container),
        workload_id: workload_id(container),
        place: place(container),
    }
}

/// The node and the GPUs of a run, which its environment names.
fn place(container: &ContainerInspectResponse) -> Option<RunPlace> {
    let variables = container.config.as_ref()?.env.as_ref()?;
    environment::place(|name| {
        variables.iter().find_map(|one| one.strip_prefix(name)?.strip_prefix('='))
    })
}

/// The workload that its label names; every container of a server has one.
fn workload_id(container: &ContainerInspectResponse) -> Uuid {
    let labels = container.config.as_ref().and_then(|config| config.labels.as_ref());
    let label = labels.and_then(|labels| labels.get(WORKLOAD_ID_LABEL));
    label.and_then(|id| id.parse().ok()).unwrap_or_default()
}

/// Where a container is reached from its machine.
pub(crate) fn address(container: &ContainerInspectResponse) -> Option<IpAddr> {
    let host = container.host_config.as_ref()?;
    if host.network_mode.as_deref() == Some("host") {
        return Some(IpAddr::from([127, 0, 0, 1]));
    }
    let networks = container.network_settings.as_ref()?.networks.as_ref()?;
    networks.values().find_map(|network| network.ip_address.as_ref()?.parse().ok())
}

/// True if a daemon ended it: the current one when it started, or its predecessor when it stopped,
/// however long ago that was.
fn ended_by_daemon(started: Instant, finished: Option<Instant>, facts: &DaemonProperties) -> bool {
    let Some(daemon) = facts.ends_all_before else { return false };
    let stopped = facts.away_since.map_or(daemon, |away| away.min(daemon));
    let since = stopped.0.saturating_sub(SHUTDOWN_MS);
    started < daemon && finished.is_none_or(|finished| finished.0 >= since)
}

/// How a process of a container ended.
pub(crate) fn exit(code: i64) -> Exit {
    match code {
        code if code > SIGNALS && code <= SIGNALS + SIGNAL_MAX => {
            Exit::Signal(i32::try_from(code - SIGNALS).unwrap_or_default())
        }
        code => Exit::Code(i32::try_from(code).unwrap_or(i32::MAX)),
    }
}

/// A time as the daemon writes it; `None` for the year 1, which means "never".
pub(crate) fn instant(text: &str) -> Option<Instant> {
    let at: jiff::Timestamp = text.parse().ok()?;
    u64::try_from(at.as_millisecond()).ok().map(Instant)
}

/// The daemon's message of a failed start, without the layers.
pub(crate) fn plain(error: &str) -> String {
    let layers = [
        "failed to create shim task: ",
        "failed to create task for container: ",
        "OCI runtime create failed: ",
        "runc create failed: ",
        "unable to start container process: ",
    ];
    let inner = layers.iter().fold(error, |text, layer| text.strip_prefix(layer).unwrap_or(text));
    inner.trim_end_matches(": unknown").to_owned()
}

/// Why a program was not started, from the last line of the output: by `docker-init`, or by the
/// look before the command.
pub(crate) fn not_executable(line: &str) -> Option<Refusal> {
    Refusal::of_line(line).or_else(|| {
        let (_, fault) = line.trim_end().strip_prefix("[FATAL tini (")?.split_once(")] ")?;
        Some(Refusal::cannot_run(fault.to_owned()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEVER: &str = "0001-01-01T00:00:00Z";
    const NOW: Instant = Instant(9_000_000);
    const DAEMON: Instant = Instant(3_602_000);

    fn seen(status: Status, edit: impl FnOnce(&mut ContainerState)) -> RunState {
        seen_by(None, status, edit)
    }

    /// By a daemon whose predecessor was noticed to be away.
    fn seen_by(
        away_since: Option<Instant>,
        status: Status,
        edit: impl FnOnce(&mut ContainerState),
    ) -> RunState {
        let mut state = ContainerState {
            status: Some(status),
            started_at: Some("1970-01-01T01:00:01.5Z".to_owned()),
            finished_at: Some("1970-01-01T01:00:03.25Z".to_owned()),
            ..ContainerState::default()
        };
        edit(&mut state);
        let container =
            ContainerInspectResponse { state: Some(state), ..ContainerInspectResponse::default() };
        let ends_all_before = Some(DAEMON);
        let facts = DaemonProperties { ends_all_before, away_since, ..Default::default() };
        inspect(&container, &facts, NOW).state
    }

    fn ended(code: i64, edit: impl FnOnce(&mut ContainerState)) -> Exit {
        let state = seen(Status::EXITED, |state| {
            state.exit_code = Some(code);
            state.started_at = Some("1970-01-01T01:00:02.5Z".to_owned());
            edit(state);
        });
        match state {
            RunState::Exited { exit, at } => {
                assert_eq!(at, Instant(3_603_250));
                exit
            }
            other => panic!("has ended: {other:?}"),
        }
    }

    #[test]
    fn codes_signals_and_the_memory_killer_are_told_apart() {
        assert_eq!(ended(0, |_| {}), Exit::Code(0));
        assert_eq!(ended(255, |_| {}), Exit::Code(255));
        assert_eq!(ended(143, |_| {}), Exit::Signal(15));
        assert_eq!(ended(137, |_| {}), Exit::Signal(9));
        assert_eq!(ended(137, |state| state.oom_killed = Some(true)), Exit::OutOfMemory);
        assert_eq!(ended(3, |state| state.oom_killed = Some(true)), Exit::Code(3), "it coped");
    }

    #[test]
    fn what_a_restart_of_the_daemon_ended_is_lost_whatever_its_code() {
        let before = |state: &mut ContainerState| {
            state.started_at = Some("1970-01-01T01:00:01Z".to_owned());
        };
        assert_eq!(ended(0, before), Exit::Lost);
        assert_eq!(ended(143, before), Exit::Lost);
        let going_down = |state: &mut ContainerState| {
            before(state);
            state.finished_at = Some("1970-01-01T00:59:42Z".to_owned());
        };
        let lost = RunState::Exited { exit: Exit::Lost, at: Instant(3_582_000) };
        assert_eq!(seen(Status::EXITED, going_down), lost);
        let long_over = seen(Status::EXITED, |state| {
            state.started_at = Some("1970-01-01T00:00:01Z".to_owned());
            state.finished_at = Some("1970-01-01T00:59:41.9Z".to_owned());
            state.exit_code = Some(3);
        });
        assert_eq!(long_over, RunState::Exited { exit: Exit::Code(3), at: Instant(3_581_900) });
        // The daemon was away for ten minutes, and ended it when it went.
        let away = Some(Instant(DAEMON.0 - 600_000));
        let ended_with_it = |finished: &'static str| {
            seen_by(away, Status::EXITED, move |state| {
                state.started_at = Some("1970-01-01T00:00:01Z".to_owned());
                state.finished_at = Some(finished.to_owned());
                state.exit_code = Some(137);
            })
        };
        let lost = RunState::Exited { exit: Exit::Lost, at: Instant(2_990_000) };
        assert_eq!(ended_with_it("1970-01-01T00:49:50Z"), lost);
        let killed = RunState::Exited { exit: Exit::Signal(9), at: Instant(2_970_000) };
        assert_eq!(ended_with_it("1970-01-01T00:49:30Z"), killed);
    }

    #[test]
    fn what_never_started_is_starting_or_cannot_run() {
        let never = |state: &mut ContainerState| {
            state.started_at = Some(NEVER.to_owned());
            state.finished_at = Some(NEVER.to_owned());
        };
        assert_eq!(seen(Status::CREATED, never), RunState::Starting);
        let refused = seen(Status::CREATED, |state| {
            never(state);
            state.error = Some(
                "failed to create shim task: OCI runtime create failed: runc create failed: unable \
                 to start container process: exec: \"x\": not found: unknown"
                    .to_owned(),
            );
        });
        let exit = Exit::CannotRun("exec: \"x\": not found".to_owned());
        assert_eq!(refused, RunState::Exited { exit, at: NOW });
    }

    #[test]
    fn a_run_has_a_process_while_its_container_runs_or_is_paused() {
        for status in [Status::RUNNING, Status::PAUSED] {
            let state = seen(status, |state| state.pid = Some(7));
            assert_eq!(state, RunState::Running { pid: Some(7), started_at: Instant(3_601_500) });
        }
    }

    #[test]
    fn a_program_that_is_not_there_is_told_by_the_init_process() {
        let line = "[FATAL tini (8)] exec nosuch failed: No such file or directory\n";
        assert_eq!(
            not_executable(line),
            Some(Refusal::cannot_run("exec nosuch failed: No such file or directory".to_owned()))
        );
        assert_eq!(not_executable("sh: nosuch: not found\n"), None);
    }
}
