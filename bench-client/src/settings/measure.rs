//! How the client measures and waits: kernel stamps, and what a thread does with nothing to do.

/// Whether the kernel's receive stamps are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum KernelStamps {
    /// Not taken.
    #[default]
    Off,
    /// Taken where the kernel gives them; the result says where it does not.
    Auto,
    /// Taken; a kernel that gives none is an error.
    On,
}

/// What a worker thread does while nothing is ready and nothing is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Polling {
    /// It sleeps until the kernel wakes it.
    #[default]
    Sleep,
    /// It looks again and again, and so needs a core of its own.
    Spin,
}

impl KernelStamps {
    /// Whether they are asked for.
    #[must_use]
    pub fn is_wanted(self) -> bool {
        self != Self::Off
    }
}
