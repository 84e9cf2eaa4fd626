//! Clocks, precise waiting and pacing: everything kvlab knows about time, and nothing about
//! protocols.
//!
//! * [`Stamp`] is a moment in nanoseconds, [`Clock`] reads it from the machine's monotonic clock
//!   and [`VirtualClock`] from a program that jumps from event to event. All decision logic takes a
//!   stamp as an argument, so it runs the same under both.
//! * [`Waiter`] lets one task of a current-thread runtime wait for a moment with a median error of
//!   microseconds: one timerfd armed a little early, then a short spin that lets other tasks run.
//! * [`Rate`], [`Pacer`] and [`GapPacer`] turn "so many per second" into moments without drift.
//! * [`TokenBucket`] limits with exact integers; [`WallClock`] maps stamps to calendar time;
//!   [`duration`] reads and prints "1.5ms".
//!
//! # How late each way to wait is
//!
//! Microseconds after the due moment, and processor time used, for a wait of 1 ms; from
//! `cargo bench -p kvlab-timing --bench wait` on a virtual machine with two cores and six compilers
//! running. Only medians mean something there: from p90 on, every row sees the scheduler give the
//! core to someone else for milliseconds now and then, most of all the rows that spin most.
//!
//! | way to wait | p50 | p75 | processor |
//! |---|---|---|---|
//! | thread sleep, timer slack as it comes (50 us) | 82-86 | 86-88 | 2 % |
//! | thread sleep, timer slack 1 ns | 30-35 | 35-37 | 2 % |
//! | thread sleep to 100 us before, then spin | 0.1 | 0.2 | 8 % |
//! | [`Waiter`], cheap mode | 31-35 | 37-38 | 2 % |
//! | [`Waiter`], adaptive lead | 0.1 | 0.1 | 3 % |
//! | the same, its runtime answering a peer without pause | 0.1 | 6-8 | (all work) |
//! | busy spin | 0.1 | 0.1 | all it gets |
//!
//! On a quiet machine of the same kind waking an idle core takes longer (50-60 us), which the lead
//! follows. Missing in the table is the runtime's own timer, which is not compiled in: it counts
//! whole milliseconds, rounded up, and was about 1.1 ms late at the median for the same wait.
//!
//! Reading [`Clock`] takes about 25-30 ns: no system call is made.

pub mod bucket;
pub mod clock;
pub mod duration;
pub mod rate;
pub mod virtual_time;
pub mod wait;
pub mod wall;

pub use bucket::TokenBucket;
pub use clock::{Clock, Stamp};
pub use rate::{GapPacer, Pacer, Rate, RateError};
pub use virtual_time::{ClockWouldGoBack, VirtualClock};
pub use wait::{Waiter, WaiterConfig, WaiterStats, set_timer_slack_1ns};
pub use wall::WallClock;
