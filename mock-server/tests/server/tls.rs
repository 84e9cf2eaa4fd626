//! TLS ports, seen by a TLS client of this test's own.

use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kvlab_mock_server::tls::ClientAuth;
use kvlab_mock_server::{MockServer, ServerBuilder};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{
    AlertDescription, CertificateError, ClientConfig, ClientConnection, Error, RootCertStore,
    StreamOwned, SupportedProtocolVersion,
};

use crate::wire::Client;

/// No answer takes longer, however busy the machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// How a client meets the server.
struct Visitor {
    trusted_pem: String,
    name: &'static str,
    identity: Option<(String, String)>,
    versions: &'static [&'static SupportedProtocolVersion],
}

const TLS12: &[&SupportedProtocolVersion] = &[&rustls::version::TLS12];
const TLS13: &[&SupportedProtocolVersion] = &[&rustls::version::TLS13];

type Stream = StreamOwned<ClientConnection, TcpStream>;

impl Visitor {
    fn of(server: &MockServer) -> Self {
        Self {
            trusted_pem: server.ca_pem().unwrap().to_owned(),
            name: "localhost",
            identity: None,
            versions: rustls::ALL_VERSIONS,
        }
    }

    fn connection(&self) -> ClientConnection {
        let mut roots = RootCertStore::empty();
        let trusted = CertificateDer::from_pem_slice(self.trusted_pem.as_bytes()).unwrap();
        roots.add(trusted).unwrap();
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(self.versions)
            .unwrap()
            .with_root_certificates(roots);
        let config = match &self.identity {
            None => builder.with_no_client_auth(),
            Some((certificate, key)) => builder
                .with_client_auth_cert(
                    vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()],
                    PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap(),
                )
                .unwrap(),
        };
        let name = ServerName::try_from(self.name).unwrap();
        ClientConnection::new(Arc::new(config), name).unwrap()
    }

    fn connect(&self, address: SocketAddr) -> Stream {
        let socket = TcpStream::connect(address).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        StreamOwned::new(self.connection(), socket)
    }

    /// Sends one request and takes as many bytes as `reply` has.
    fn exchange(&self, address: SocketAddr, request: &[u8], reply: &[u8]) -> io::Result<Vec<u8>> {
        let mut stream = self.connect(address);
        stream.write_all(request)?;
        let mut found = vec![0; reply.len()];
        stream.read_exact(&mut found)?;
        Ok(found)
    }

    fn ping(&self, address: SocketAddr) -> io::Result<()> {
        let found = self.exchange(address, b"PING\r\n", b"+PONG\r\n")?;
        assert_eq!(found, b"+PONG\r\n");
        Ok(())
    }
}

/// What TLS itself says is wrong.
fn fault(error: &io::Error) -> &Error {
    let inner = error.get_ref().unwrap_or_else(|| panic!("{error:?}"));
    inner.downcast_ref().unwrap_or_else(|| panic!("{error:?}"))
}

fn server() -> ServerBuilder {
    MockServer::builder()
        .redis_tls_port(0)
        .aerospike_tls_port(0)
}

#[test]
fn both_protocols_are_served_over_tls_beside_their_plain_ports() {
    let server = server().node_name("T1").start().unwrap();
    let visitor = Visitor::of(&server);
    let redis = server.redis_tls_addr().unwrap();
    visitor.ping(redis).unwrap();
    assert_eq!(
        Client::connect(server.redis_addr().unwrap()).ask("PING"),
        "+PONG"
    );
    // An info request of version 2 and type 1, and its answer.
    let request = b"\x02\x01\0\0\0\0\0\x05node\n";
    let reply = b"\x02\x01\0\0\0\0\0\x08node\tT1\n";
    let found = visitor.exchange(server.aerospike_tls_addr().unwrap(), request, reply);
    assert_eq!(found.unwrap(), reply);
}

#[test]
fn an_aerospike_node_tells_its_tls_address_and_peers() {
    let server = server().start().unwrap();
    let (plain, secure) = (
        server.aerospike_addr().unwrap(),
        server.aerospike_tls_addr().unwrap(),
    );
    let request = b"\x02\x01\0\0\0\0\0\x30service-clear-std\nservice-tls-std\npeers-tls-std\n";
    let body = format!(
        "service-clear-std\t{plain}\nservice-tls-std\t{secure}\npeers-tls-std\t0,3000,[]\n"
    );
    let mut reply = b"\x02\x01\0\0\0\0\0".to_vec();
    reply.push(u8::try_from(body.len()).unwrap());
    reply.extend(body.bytes());
    let found = Visitor::of(&server).exchange(secure, request, &reply);
    assert_eq!(found.unwrap(), reply);
}

#[test]
fn every_name_of_the_machine_and_both_versions_are_served() {
    let server = server().start().unwrap();
    let address = server.redis_tls_addr().unwrap();
    for name in ["localhost", "127.0.0.1", "::1"] {
        for versions in [TLS12, TLS13] {
            let visitor = Visitor {
                name,
                versions,
                ..Visitor::of(&server)
            };
            visitor.ping(address).unwrap();
        }
    }
    let other = Visitor {
        name: "example.org",
        ..Visitor::of(&server)
    };
    let error = other.ping(address).unwrap_err();
    assert!(
        matches!(
            fault(&error),
            Error::InvalidCertificate(CertificateError::NotValidForNameContext { .. })
        ),
        "{error:?}"
    );
}

#[test]
fn a_client_that_trusts_another_authority_refuses() {
    let [ours, other] = [(); 2].map(|()| server().start().unwrap());
    let error = Visitor::of(&other)
        .ping(ours.redis_tls_addr().unwrap())
        .unwrap_err();
    assert_eq!(
        fault(&error),
        &Error::InvalidCertificate(CertificateError::UnknownIssuer)
    );
}

#[test]
fn required_tls_leaves_no_plain_port() {
    let server = MockServer::builder()
        .tls_required(true)
        .shared_port(0)
        .start()
        .unwrap();
    assert_eq!(
        (server.redis_addr(), server.aerospike_addr(), server.addr()),
        (None, None, None)
    );
    let visitor = Visitor::of(&server);
    visitor.ping(server.redis_tls_addr().unwrap()).unwrap();
    visitor.ping(server.tls_addr().unwrap()).unwrap();
    // With a TLS port of its own, the usual port of the protocol is not opened at all.
    let server = MockServer::builder()
        .tls_required(true)
        .redis_port(1)
        .redis_tls_port(0)
        .start()
        .unwrap();
    Visitor::of(&server)
        .ping(server.redis_tls_addr().unwrap())
        .unwrap();
}

#[test]
fn a_client_without_tls_is_reset() {
    let server = server().start().unwrap();
    let mut stream = TcpStream::connect(server.redis_tls_addr().unwrap()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(b"PING\r\n").unwrap();
    let error = stream.read(&mut [0; 16]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
}

#[test]
fn replies_larger_than_any_buffer_come_whole_to_a_slow_reader() {
    let server = server().start().unwrap();
    let value: Vec<u8> = (0..8 << 20)
        .map(|place: u32| u8::try_from(place % 251).unwrap())
        .collect();
    server.redis().set("large", &value[..]).unwrap();
    let mut stream = Visitor::of(&server).connect(server.redis_tls_addr().unwrap());
    // The server has to end in order behind all of it.
    stream
        .write_all(b"GET large\r\nGET large\r\nQUIT\r\n")
        .unwrap();
    let mut expected = Vec::new();
    for _ in 0..2 {
        expected.extend(format!("${}\r\n", value.len()).bytes());
        expected.extend(&value);
        expected.extend(b"\r\n");
    }
    expected.extend(b"+OK\r\n");
    let mut found = Vec::new();
    // An end without the farewell of TLS would be an error here.
    stream.read_to_end(&mut found).unwrap();
    assert!(found == expected, "{} bytes", found.len());
}

#[test]
fn requests_larger_than_any_buffer_and_pipelines_are_taken_whole() {
    let server = server().start().unwrap();
    let mut stream = Visitor::of(&server).connect(server.redis_tls_addr().unwrap());
    let value = vec![b'v'; 1 << 20];
    let head = format!("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n${}\r\n", value.len());
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(&value).unwrap();
    stream.write_all(b"\r\n").unwrap();
    let pings = 20_000;
    stream.write_all(&b"PING\r\n".repeat(pings)).unwrap();
    let expected = [b"+OK\r\n".to_vec(), b"+PONG\r\n".repeat(pings)].concat();
    let mut found = vec![0; expected.len()];
    stream.read_exact(&mut found).unwrap();
    assert!(found == expected);
    let stored = server.redis().get("k").unwrap().unwrap();
    assert!(stored[..] == value[..]);
}

#[test]
fn records_that_come_byte_by_byte_are_put_together() {
    let server = server().start().unwrap();
    let mut tls = Visitor::of(&server).connection();
    let mut socket = TcpStream::connect(server.redis_tls_addr().unwrap()).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket.set_nodelay(true).unwrap();
    tls.writer().write_all(b"PING\r\n").unwrap();
    let mut found = Vec::new();
    while found.len() < 7 {
        let mut out = Vec::new();
        while tls.wants_write() {
            tls.write_tls(&mut out).unwrap();
        }
        for byte in out {
            socket.write_all(&[byte]).unwrap();
        }
        if tls.wants_read() {
            assert!(tls.read_tls(&mut socket).unwrap() > 0);
            let state = tls.process_new_packets().unwrap();
            let mut plain = vec![0; state.plaintext_bytes_to_read()];
            tls.reader().read_exact(&mut plain).unwrap();
            found.extend(plain);
        }
    }
    assert_eq!(found, b"+PONG\r\n");
}

#[test]
fn a_handshake_that_stalls_is_ended_and_keeps_nobody_waiting() {
    let server = server().start().unwrap();
    let address = server.redis_tls_addr().unwrap();
    let begin = server.clock().now();
    let passed = || Duration::from_nanos(server.clock().now().saturating_since(begin));
    let mut stalled = TcpStream::connect(address).unwrap();
    stalled.set_read_timeout(Some(PATIENCE)).unwrap();
    // The head of a record of 512 bytes, and nothing behind it.
    stalled.write_all(b"\x16\x03\x01\x02\x00").unwrap();
    Visitor::of(&server).ping(address).unwrap();
    assert!(passed() < Duration::from_secs(5));
    assert_eq!(stalled.read(&mut [0; 16]).unwrap(), 0);
    let taken = passed();
    assert!(taken >= Duration::from_secs(10), "{taken:?}");
}

/// An authority, and certificates that it signed, in files.
struct Clients {
    folder: PathBuf,
    identity: (String, String),
}

impl Clients {
    fn new(name: &str) -> Self {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
        let folder = folder.join(format!("{name}.{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let mut ca = rcgen::CertificateParams::new(Vec::new()).unwrap();
        ca.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let ca = rcgen::CertifiedIssuer::self_signed(ca, rcgen::KeyPair::generate().unwrap());
        let ca = ca.unwrap();
        let key = rcgen::KeyPair::generate().unwrap();
        let params = rcgen::CertificateParams::new(vec!["client".to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &ca).unwrap();
        fs::write(folder.join("ca.pem"), ca.pem()).unwrap();
        Self {
            folder,
            identity: (certificate.pem(), key.serialize_pem()),
        }
    }

    fn server(&self, auth: ClientAuth) -> MockServer {
        let builder = server().tls_client_ca(self.folder.join("ca.pem"), auth);
        builder.start().unwrap()
    }
}

impl Drop for Clients {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

#[test]
fn certificates_of_clients_are_verified_where_they_are_given_and_may_be_required() {
    let (ours, foreign) = (Clients::new("ours"), Clients::new("foreign"));
    for auth in [ClientAuth::Optional, ClientAuth::Required] {
        let server = ours.server(auth);
        let address = server.redis_tls_addr().unwrap();
        let visit = |identity: Option<&(String, String)>| {
            let visitor = Visitor {
                identity: identity.cloned(),
                ..Visitor::of(&server)
            };
            visitor.ping(address)
        };
        visit(Some(&ours.identity)).unwrap();
        let error = visit(Some(&foreign.identity)).unwrap_err();
        assert!(matches!(fault(&error), Error::AlertReceived(_)), "{error}");
        match (auth, visit(None)) {
            (ClientAuth::Optional, result) => result.unwrap(),
            (ClientAuth::Required, result) => assert_eq!(
                fault(&result.unwrap_err()),
                &Error::AlertReceived(AlertDescription::CertificateRequired)
            ),
        }
    }
}

#[test]
fn a_certificate_without_its_key_is_not_served() {
    let (one, other) = (Clients::new("one"), Clients::new("other"));
    let [cert, key] = ["cert.pem", "key.pem"].map(|name| one.folder.join(name));
    fs::write(&cert, &one.identity.0).unwrap();
    let start = || server().tls_cert(&cert, &key).start();
    let error = start().unwrap_err().to_string();
    assert!(
        error.starts_with("cannot read a private key from"),
        "{error}"
    );
    fs::write(&key, &other.identity.1).unwrap();
    let error = start().unwrap_err().to_string();
    assert!(
        error.contains("is not the one of the certificate"),
        "{error}"
    );
    fs::write(&key, &one.identity.1).unwrap();
    assert_eq!(start().unwrap().ca_pem(), None);
}

#[test]
fn requests_over_tls_have_rows_like_others() {
    let server = server()
        .latency("get=constant(3ms)")
        .record_rows(true)
        .start()
        .unwrap();
    let visitor = Visitor::of(&server);
    let address = server.redis_tls_addr().unwrap();
    let before = server.clock().now();
    let reply = visitor
        .exchange(address, b"GET none\r\n", b"$-1\r\n")
        .unwrap();
    let after = server.clock().now();
    assert_eq!(reply, b"$-1\r\n");
    let row = server.stop().rows[0].clone();
    assert!(before < row.read && row.read <= row.start, "{row:?}");
    assert_eq!(row.due.saturating_since(row.start), 3_000_000);
    assert!(row.due <= row.written && row.written < after, "{row:?}");
}

#[test]
fn a_connection_that_is_held_begins_its_handshake_when_it_is_let_in() {
    let server = server().accept_rate("1/500ms").start().unwrap();
    let visitor = Visitor::of(&server);
    let address = server.redis_tls_addr().unwrap();
    let before = server.clock().now();
    visitor.ping(address).unwrap();
    visitor.ping(address).unwrap();
    let passed = server.clock().now().saturating_since(before);
    assert!(passed >= 490_000_000, "{passed} ns");
}

#[test]
fn a_connection_over_the_cap_is_closed_before_the_handshake() {
    let server = server().max_connections(1).start().unwrap();
    let visitor = Visitor::of(&server);
    let address = server.redis_tls_addr().unwrap();
    let mut first = visitor.connect(address);
    first.write_all(b"PING\r\n").unwrap();
    first.read_exact(&mut [0; 7]).unwrap();
    // The text of a plain port would be no TLS; there is not a byte of it.
    let mut second = TcpStream::connect(address).unwrap();
    second.set_read_timeout(Some(PATIENCE)).unwrap();
    assert_eq!(second.read(&mut [0; 16]).unwrap(), 0);
    let error = visitor.ping(address).unwrap_err();
    let kinds = [
        ErrorKind::UnexpectedEof,
        ErrorKind::ConnectionReset,
        ErrorKind::BrokenPipe,
    ];
    assert!(kinds.contains(&error.kind()), "{error:?}");
}
