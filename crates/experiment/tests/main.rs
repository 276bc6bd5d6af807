//! All tests of this folder, in one binary.

mod bbr;
mod common;
mod constant_traffic;
mod copy;
mod delay_based;
mod drawn;
mod engines;
mod extensions;
mod extrapolated;
mod fcp;
mod gateways;
mod iscsi;
mod iscsi_lost;
mod ledbat;
mod loss_based;
mod management;
mod measured_windows;
mod mitigations;
mod moves;
mod runs;
mod striped;
mod udt;
mod waits;
mod windows_over_time;
