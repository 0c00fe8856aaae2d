//! A parameter server of a job in a pod of its own: `elasticdl ps FORM --flag=value…`. Owns: the
//! variables that it reads from its pod, and how it stops. Does not know about: the meaning of
//! flags (`master`), models and updates (`elastic-ps`).
//!
//! When the whole job is stopped, its pods get SIGTERM together. The leader saves the model when
//! the workers have left, and notifies the master; the other servers and the master wait for that.

use std::cell::Cell;
use std::ffi::OsString;

use cli_kit::exit::Error;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;

use crate::master::{self, LEAVE_MAX, Place, SAVE_MAX, TERMINATED};
use crate::progress::{self, print_line};

/// Its number, and the host and port at which others reach it.
fn own(variable: impl Fn(&str) -> Option<String>) -> Result<(u32, String, u16), Error> {
    let wrong = |name: &str, form: &str| {
        Error::Usage(format!(
            "{name} is not {form}; `elasticdl ps` runs in a pod of a job, which `elasticdl train \
             --num_ps_pods=…` submits"
        ))
    };
    let index = variable("PS_ID").and_then(|index| index.parse().ok());
    let index = index.ok_or_else(|| wrong("PS_ID", "a number from 0"))?;
    let address = variable("PS_ADDR").unwrap_or_default();
    let port = address.rsplit_once(':').and_then(|(_, port)| port.parse().ok());
    let port = port.ok_or_else(|| wrong("PS_ADDR", "HOST:PORT"))?;
    Ok((index, address, port))
}

/// Runs a parameter server until the job has ended.
pub(crate) async fn run(words: &[OsString]) -> Result<(), Error> {
    let variable = |name: &str| std::env::var(name).ok();
    let (form, values) = master::read(words)?;
    let (place, (index, address, port)) = (Place::find(variable)?, own(variable)?);
    let job = master::config(form, &values)?;
    let settings = elastic_ps::Settings {
        listen: place.listen(port),
        advertise: Some(address),
        ..master::server(index, &job, &place, &values)
    };
    let (name, servers) = (&job.name, job.parameter_servers);
    print_line(&format!("parameter server {index} of {servers} of job {name}"));
    let mut terminated = signal(SignalKind::terminate())?;
    let (is_stopped, begins) = (Cell::new(false), Notify::new());
    let stop = async {
        terminated.recv().await;
        is_stopped.set(true);
        begins.notify_one();
        match index {
            0 => place.workers_left().await,
            // Without an answer of the master no checkpoint is saved.
            _ => drop(place.is_saved().await),
        }
    };
    let late = async {
        begins.notified().await;
        tokio::time::sleep(LEAVE_MAX + SAVE_MAX).await;
    };
    tokio::select! {
        ended = elastic_ps::run_until(settings, stop) => {
            let pushes = ended.map_err(master::failed)?;
            if index == 0 {
                print_line(&progress::gradients(pushes));
            }
        }
        () = late => print_line("stopped, and the model goes back to a checkpoint: saving took too long"),
    }
    match is_stopped.get() {
        false => Ok(()),
        true => Err(Error::Said(TERMINATED)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_finds_its_number_and_its_place() {
        let of = |number: &'static str, address: &'static str| {
            own(move |name| match name {
                "PS_ID" => Some(number.to_owned()),
                _ => Some(address.to_owned()),
            })
        };
        assert_eq!(of("1", "j-ps-1:7").unwrap(), (1, "j-ps-1:7".to_owned(), 7));
        let error = of("one", "j-ps-1:7").map(drop).unwrap_err().to_string();
        assert!(error.contains("PS_ID is not a number from 0"), "{error}");
        let error = of("0", "here").map(drop).unwrap_err().to_string();
        assert!(error.contains("PS_ADDR is not HOST:PORT"), "{error}");
    }
}
