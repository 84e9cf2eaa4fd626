//! The task of one connection: wait for the socket, read, let the session work, write.

use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll};

use super::hub::{Connection, Hub};

/// Serves `connection` until it ends.
pub(super) async fn serve(hub: Rc<Hub>, connection: Rc<Connection>) {
    // One future for the whole life of the connection: each wake-up does one round of work.
    poll_fn(|context| poll_round(&hub, &connection, context)).await;
    let now = hub.clock.now();
    connection
        .session
        .borrow_mut()
        .close(now, &mut hub.worker.borrow_mut());
    if connection.session.borrow().ends_by_reset() {
        connection.transport.reset_when_closed();
    } else {
        connection.transport.end();
        discard_input(&hub, &connection);
    }
    hub.connections.borrow_mut().remove(&connection.id);
}

/// Reads away what the client sent after the end, since closing a socket with unread bytes resets the
/// connection and may destroy the last reply on its way.
fn discard_input(hub: &Hub, connection: &Connection) {
    let mut scratch = hub.scratch.borrow_mut();
    for _ in 0..READS_PER_ROUND {
        match connection.transport.discard(&mut scratch) {
            Ok(read) if read > 0 => {}
            _ => return,
        }
    }
}

fn poll_round(hub: &Hub, connection: &Connection, context: &mut Context<'_>) -> Poll<()> {
    remember_waker(connection, context);
    // Bounded, so that one busy connection does not starve the others of its worker.
    for _ in 0..READS_PER_ROUND {
        if connection.is_over() {
            return Poll::Ready(());
        }
        if connection.write_blocked.get() {
            match connection.transport.poll_writable(context) {
                Poll::Ready(Ok(())) => {
                    connection.write_blocked.set(false);
                    if connection.transport.push().is_err() {
                        return Poll::Ready(());
                    }
                    hub.flush(connection);
                    continue;
                }
                Poll::Ready(Err(_)) => return Poll::Ready(()),
                Poll::Pending => {}
            }
        }
        if !connection.session.borrow().wants_input() {
            connection.input_paused.set(true);
            return Poll::Pending;
        }
        if connection.transport.is_handshaking() {
            hub.time_handshake(connection);
        }
        match poll_input(hub, connection, context) {
            Poll::Ready(Ok(())) => {}
            Poll::Ready(Err(_)) => return Poll::Ready(()),
            Poll::Pending => return Poll::Pending,
        }
    }
    context.waker().wake_by_ref();
    Poll::Pending
}

fn poll_input(
    hub: &Hub,
    connection: &Connection,
    context: &mut Context<'_>,
) -> Poll<io::Result<()>> {
    let mut scratch = hub.scratch.borrow_mut();
    let (read, kernel_stamp) = match connection.transport.poll_read(context, &mut scratch) {
        Poll::Ready(Ok(read)) => read,
        Poll::Ready(Err(error)) => {
            hub.note_tls_fault(connection, &error);
            return Poll::Ready(Err(error));
        }
        Poll::Pending => return Poll::Pending,
    };
    let now = kernel_stamp.unwrap_or_else(|| hub.clock.now());
    {
        let mut session = connection.session.borrow_mut();
        let mut worker = hub.worker.borrow_mut();
        match scratch.get(..read) {
            Some(data) if read > 0 => session.handle_bytes(now, data, &mut worker),
            _ => session.handle_eof(now, &mut worker),
        }
    }
    hub.flush(connection);
    Poll::Ready(Ok(()))
}

fn remember_waker(connection: &Connection, context: &Context<'_>) {
    let mut task = connection.task.borrow_mut();
    if !task
        .as_ref()
        .is_some_and(|known| known.will_wake(context.waker()))
    {
        *task = Some(context.waker().clone());
    }
}

const READS_PER_ROUND: usize = 16;
