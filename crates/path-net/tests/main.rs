//! Sessions, trains and the reflector on real sockets.

mod live;
