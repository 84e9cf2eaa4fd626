//! What clients registered with the server beside records: indexes and modules.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::index::Index;

/// Indexes in the order of their creation, modules by file name. Both are small and seldom touched.
#[derive(Debug, Default)]
pub(in crate::dialect::aerospike) struct Catalog {
    indexes: Mutex<Vec<Index>>,
    modules: Mutex<BTreeMap<Vec<u8>, Vec<u8>>>,
}

impl Catalog {
    /// The indexes, locked. Must not be held while records are touched.
    pub(super) fn indexes(&self) -> MutexGuard<'_, Vec<Index>> {
        self.indexes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sources of modules by file name, locked.
    pub(super) fn modules(&self) -> MutexGuard<'_, BTreeMap<Vec<u8>, Vec<u8>>> {
        self.modules.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
