//! What is done around a run, by those who know more than the load generator does.

use std::io::Write;

use crate::engine::Control;
use crate::record::Summary;
use crate::settings::Settings;

/// Accompanies the runs of a front end: the lab makes certificates with it.
pub trait Companion {
    /// A run is about to begin. What has to be said goes to `stderr`.
    fn before(&mut self, settings: &mut Settings, control: &Control, stderr: &mut dyn Write);

    /// The run is over, and its reports are about to be written.
    fn after(&mut self, summary: &mut Summary, control: &Control);
}

/// Does nothing.
pub(super) struct Nobody;

impl Companion for Nobody {
    fn before(&mut self, _: &mut Settings, _: &Control, _: &mut dyn Write) {}

    fn after(&mut self, _: &mut Summary, _: &Control) {}
}
