//! Processes that count as ended.

use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

use fraction_abi::owner::{Life, Owner};

use crate::support::{fork, wait};

fn pid(id: libc::pid_t) -> u32 {
    u32::try_from(id).unwrap()
}

#[test]
fn a_process_is_alive_until_it_ends_also_as_a_zombie() {
    let me = Owner::current();
    let child = fork(|| {
        // SAFETY: waits for a signal.
        unsafe { libc::pause() };
    });
    let owner = Owner { pid: pid(child), start: 0, image: 0, ..me };
    assert_eq!(owner.life(&me), Life::Alive);
    // SAFETY: a child of this test; waits until it is a zombie, and leaves it one.
    unsafe {
        libc::kill(child, libc::SIGKILL);
        let mut info = std::mem::zeroed();
        libc::waitid(libc::P_PID, pid(child), &raw mut info, libc::WEXITED | libc::WNOWAIT);
    }
    assert_eq!(owner.life(&me), Life::Dead);
    wait(child);
    assert_eq!(owner.life(&me), Life::Dead);
}

#[test]
fn another_process_with_the_same_id_is_another_owner() {
    let me = Owner::current();
    assert!(me.start > 0 && me.namespace > 0 && me.image > 0);
    assert_eq!(me.life(&me), Life::Alive);
    assert_eq!(Owner { start: me.start + 1, ..me }.life(&me), Life::Dead);
}

#[test]
fn nothing_is_known_of_a_process_in_another_namespace() {
    let me = Owner::current();
    let other = Owner { pid: u32::MAX >> 2, start: 5, namespace: me.namespace + 1, image: 9 };
    assert_eq!(other.life(&me), Life::Alive);
    assert_eq!(Owner { namespace: me.namespace, ..other }.life(&me), Life::Dead);
}

#[test]
fn a_program_that_was_replaced_by_exec_has_ended() {
    let me = Owner::current();
    let before = Owner { image: me.image + 16, ..me };
    assert_eq!(before.life(&me), Life::Dead);
    // Where it is unknown, nothing is concluded from it.
    assert_eq!(Owner { image: 0, ..me }.life(&me), Life::Alive);
}

#[test]
fn without_the_proc_of_its_namespace_a_process_knows_only_which_ids_exist() {
    let me = Owner { start: 0, image: 0, ..Owner::current() };
    // This id in a `/proc` of another namespace is another process.
    let other = Owner { start: 5, image: 9, ..me };
    assert_eq!(other.life(&me), Life::Alive);
    assert_eq!(Owner { pid: u32::MAX >> 2, ..other }.life(&me), Life::Dead);
}

/// Ends the main thread of a child, whose other thread goes on. Its arguments are a word that the
/// child sets when only that thread is left.
#[test]
fn a_process_whose_main_thread_has_ended_is_alive() {
    let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
    // SAFETY: new zeroed memory, which stays and is used as one number.
    let word: &AtomicU32 = unsafe {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        &*libc::mmap(std::ptr::null_mut(), 4096, protection, flags, -1, 0).cast()
    };
    extern "C" fn go_on(_: *mut libc::c_void) -> *mut libc::c_void {
        loop {
            // SAFETY: waits for a signal.
            unsafe { libc::pause() };
        }
    }
    let child = fork(|| {
        let mut thread = 0;
        // SAFETY: starts a thread that only waits, then ends this one alone.
        unsafe {
            libc::pthread_create(&raw mut thread, std::ptr::null(), go_on, std::ptr::null_mut());
            word.store(1, SeqCst);
            libc::syscall(libc::SYS_exit, 0);
        }
    });
    let stat = format!("/proc/{child}/stat");
    while word.load(SeqCst) == 0 || !std::fs::read_to_string(&stat).unwrap().contains(") Z ") {
        std::thread::yield_now();
    }
    let me = Owner::current();
    assert_eq!(Owner { pid: pid(child), start: 0, image: 0, ..me }.life(&me), Life::Alive);
    // SAFETY: a child of this test.
    unsafe { libc::kill(child, libc::SIGKILL) };
    wait(child);
}
