//! Waits for SIGINT or SIGTERM.

use std::io;

use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that end a server, caught since this was made.
#[derive(Debug)]
pub(super) struct StopSignals {
    runtime: Runtime,
    interrupt: Signal,
    terminate: Signal,
}

impl StopSignals {
    /// Catches the signals from here on.
    pub(super) fn catch() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_io().build()?;
        let guard = runtime.enter();
        let interrupt = signal(SignalKind::interrupt())?;
        let terminate = signal(SignalKind::terminate())?;
        drop(guard);
        Ok(Self {
            runtime,
            interrupt,
            terminate,
        })
    }

    /// Returns when one of them has come.
    pub(super) fn wait(mut self) {
        self.runtime.block_on(async {
            tokio::select! {
                _ = self.interrupt.recv() => {}
                _ = self.terminate.recv() => {}
            }
        });
    }
}
