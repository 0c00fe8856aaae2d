//! From command lines to meanings and bodies of requests.

mod access;
mod again;
mod complete;
mod flags;
mod help;
mod lines;
mod requests;
mod spellings;
