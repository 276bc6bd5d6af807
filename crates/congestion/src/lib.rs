//! Congestion control from one C source: builds the algorithms of `congestion/`, wraps them, loads a user's own.
//!
//! The crate compiles every file of `congestion/` into this library, describes each (name, source, parameters with
//! unit, range and default), and runs it on a flow through the hooks of Linux's `tcp_congestion_ops`. A user's own file
//! is compiled by the system's compiler and loaded ([`compile`]), or compiled by clang for BPF ([`compile_bpf`]). It
//! does not decide when a hook is called, that is TCP's part; load BPF into a kernel.
//!
//! **Invariant: an algorithm sees and does here what Linux would let it see and do, so that the same file can be loaded
//! into the kernel.** Tests hold it: each built-in is also compiled for BPF and put through the kernel's verifier.

mod bpf;
mod builtin;
mod clang;
mod compile;
mod compiler;
mod controller;
mod descriptor;
mod diagnose;
#[cfg(unix)]
mod guard;
mod headers;
mod hooks;
#[cfg(test)]
mod layout;
mod library;
mod load;
mod own;
pub mod parity;
mod problem;
pub mod sock;
mod source;

pub use bpf::{builtin_object, builtin_objects_compiler, compile_bpf, compile_bpf_as, BpfBuild, BpfObject};
pub use builtin::{builtin, find};
pub use compile::{compile, compile_and_warn, CompileError};
pub use controller::{Controller, ParamError};
pub use descriptor::{Algorithm, ParamDesc};
pub use headers::HEADERS;
pub use problem::Problem;
pub use sock::*;
