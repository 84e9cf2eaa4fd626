//! The subcommands of `kvlab`.

pub mod run;
