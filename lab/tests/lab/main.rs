//! Tests of the lab as a whole, in one program.

mod support;
mod virtual_runs;
