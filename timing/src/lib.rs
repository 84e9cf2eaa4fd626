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
