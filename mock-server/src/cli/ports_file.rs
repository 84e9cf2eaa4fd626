//! The file that tells scripts which ports are open: `redis=6379`, `aerospike=3000`, `shared=4000`,
//! one line for each that is; TLS ports are `redis_tls`, `aerospike_tls` and `shared_tls`.
//!
//! It appears whole (written beside and renamed) and only once the ports accept connections; one
//! left by an earlier run is removed before, so that whoever waits for it gets this run's ports. A
//! shell can read it with `. FILE`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::listed;
use crate::shared::Addresses;

#[derive(Debug)]
pub(super) struct PortsFile {
    path: PathBuf,
}

impl PortsFile {
    /// Removes what an earlier run left at `path`.
    pub(super) fn new(path: &Path) -> Result<Self> {
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error)
                .with_context(|| format!("cannot replace the ports file {}", path.display())),
            _ => Ok(Self {
                path: path.to_owned(),
            }),
        }
    }

    /// Writes the ports.
    pub(super) fn write(&self, addresses: &Addresses) -> Result<()> {
        let lines: String = listed(addresses)
            .map(|(name, address)| format!("{}={}\n", name.replace('-', "_"), address.port()))
            .collect();
        let mut beside = self.path.clone().into_os_string();
        beside.push(format!(".{}", std::process::id()));
        fs::write(&beside, lines)
            .and_then(|()| fs::rename(&beside, &self.path))
            .with_context(|| format!("cannot write the ports file {}", self.path.display()))
    }
}
