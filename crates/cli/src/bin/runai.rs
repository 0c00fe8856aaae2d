//! The researcher's command line.

fn main() -> std::process::ExitCode {
    #[cfg(all(target_env = "gnu", target_feature = "crt-static"))]
    names::without_modules();
    runai::main(std::env::args_os().collect())
}

/// Names of hosts where this program has the C library in itself.
#[cfg(all(target_env = "gnu", target_feature = "crt-static"))]
mod names {
    #![expect(unsafe_code, reason = "a function of the C library that no crate offers")]

    use std::ffi::{c_char, c_int};

    unsafe extern "C" {
        fn __nss_configure_lookup(database: *const c_char, services: *const c_char) -> c_int;
    }

    /// Hosts are looked up in `/etc/hosts` and DNS, whatever `/etc/nsswitch.conf` says: further
    /// ways are modules of the machine, made for the C library of the machine, and end a program
    /// that has another one (SIGFPE).
    pub(super) fn without_modules() {
        // SAFETY: both are texts that end with a zero, and no other thread runs yet.
        let _always_known =
            unsafe { __nss_configure_lookup(c"hosts".as_ptr(), c"files dns".as_ptr()) };
    }
}
