//! The server from outside: as a program of its own and as a part of a test.

mod accuracy;
mod embedded;
mod program;
mod wire;
