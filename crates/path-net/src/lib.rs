//! Path tests on real sockets: UDP with the kernel's time stamps and TTL, ICMP errors of routers, a STAMP reflector.
//!
//! **Invariant: what a test decides is decided in `path-test`; here packets leave when they are due and come back with
//! the time at which the kernel saw them.**
