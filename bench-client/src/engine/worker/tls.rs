//! What a worker does about TLS: it knows the names of nodes, and what a fault means for the run.

use kvlab_timing::Stamp;
use rustls::pki_types::ServerName;

use super::links::Failure;
use super::{ConnId, Driver, Worker};
use crate::engine::{RunError, TlsFault};
use crate::record::{Cause, SocketEnd};
use crate::settings::server_name;

impl<D: Driver> Worker<D> {
    /// The name that the certificate of the connection's node has to be for, if the node has one of
    /// its own.
    pub fn server_name(&self, conn: ConnId) -> Option<ServerName<'static>> {
        let place = self.place(conn)?;
        let name = self.driver.server_name(self.conns.get(place)?.group)?;
        server_name(name).ok()
    }

    /// TLS on the connection failed, and the shell has closed it. What is wrong does not go away by
    /// itself: before anything was heard of any server, it ends the run.
    pub fn handle_tls_fault(&mut self, now: Stamp, conn: ConnId, fault: &TlsFault) {
        if *fault == TlsFault::Closed {
            // As servers do with connections that they have no room for, too.
            self.handle_closed(now, conn, SocketEnd::Closed, &fault.to_string());
            return;
        }
        let Some(place) = self.place(conn) else {
            return;
        };
        if !self.heard {
            self.failure = Some(RunError::Tls {
                address: self.conns[place].address,
                fault: fault.clone(),
            });
            self.finish(now);
            return;
        }
        self.advance(now);
        self.lose(
            now,
            place,
            Failure::of(Cause::Tls, &fault.to_string()),
            false,
        );
        self.dispatch(now);
    }
}
