//! How `kvlab` ends: one table of numbers for all subcommands. The load generator, which can end in
//! most of these ways, defines it.

pub use kvlab_bench_client::frontend::ExitStatus;
