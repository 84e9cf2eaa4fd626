//! SIGINT and SIGTERM: the first ends the load and lets the summary be printed, the second ends
//! the program at once.
//!
//! The engine runs on the calling thread, so a small thread with a runtime of its own waits for
//! the signals.

use std::io;
use std::thread::JoinHandle;

use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;

use crate::engine::Control;
use crate::frontend::ExitStatus;

/// Watches for the signals until it is dropped.
#[derive(Debug)]
pub struct SignalWatch {
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl SignalWatch {
    /// Takes the two signals over from here on; the first stops what `control` controls.
    ///
    /// # Errors
    /// When the system gives no thread or no signal handler.
    pub fn start(control: Control) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_io().build()?;
        let signals = {
            let _inside = runtime.enter();
            // Taken over before the load begins: no signal falls into a gap.
            Signals {
                interrupt: signal(SignalKind::interrupt())?,
                terminate: signal(SignalKind::terminate())?,
            }
        };
        let (end, ended) = oneshot::channel();
        let thread = std::thread::Builder::new()
            .name("signals".to_owned())
            .spawn(move || watch(&runtime, signals, ended, &control))?;
        Ok(Self {
            end: Some(end),
            thread: Some(thread),
        })
    }
}

impl Drop for SignalWatch {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            // It only fails when the thread panicked, which has been reported already.
            let _ = thread.join();
        }
    }
}

#[derive(Debug)]
struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

fn watch(
    runtime: &Runtime,
    mut signals: Signals,
    mut ended: oneshot::Receiver<()>,
    control: &Control,
) {
    runtime.block_on(async {
        tokio::select! {
            () = signals.next() => control.stop(),
            _ = &mut ended => return,
        }
        tokio::select! {
            () = signals.next() => {
                std::process::exit(i32::from(ExitStatus::Interrupted.code()))
            }
            _ = &mut ended => {}
        }
    });
}
