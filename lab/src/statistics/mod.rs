//! Statistics as plain functions of samples: distances, tests of a law, where a warm-up ends.
//!
//! Order statistics of raw samples are in [`crate::truth::exact`].

pub mod anderson_darling;
pub mod autocorrelation;
pub mod mser;
pub mod wasserstein;
