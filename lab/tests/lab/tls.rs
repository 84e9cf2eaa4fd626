//! Our client and our server over TLS, on sockets.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use kvlab::check::judge;
use kvlab::runner::{real, virtual_time};
use kvlab::verdict::{Kind, Verdict};
use kvlab_bench_client::engine::{RunResult, Silent, TlsFault, run};
use kvlab_bench_client::record::Notice;
use kvlab_bench_client::settings::{
    AerospikeTarget, Identity, KernelStamps, Pipeline, RedisTarget, SizeDistribution, Stop, Target,
    TlsSettings, Trust,
};
use kvlab_bench_client::{Control, RunError, Settings};
use kvlab_mock_server::tls::ClientAuth;
use kvlab_mock_server::{MockServer, ServerBuilder};

use super::support::scenario;

fn server() -> ServerBuilder {
    MockServer::builder()
        .redis_tls_port(0)
        .aerospike_tls_port(0)
}

fn trusted(server: &MockServer) -> TlsSettings {
    let trust = Trust::from_pem(server.ca_pem().unwrap().as_bytes()).unwrap();
    TlsSettings::new("localhost").unwrap().trusting(trust)
}

fn redis(address: SocketAddr, tls: TlsSettings) -> Settings {
    let mut settings = Settings::new(Target::Redis(RedisTarget::new(address, 1, 1)));
    settings.tls = Some(tls);
    settings.connections = NonZeroU32::new(4).unwrap();
    settings.stop = Stop {
        duration: None,
        requests: Some(400),
    };
    settings
}

fn load(settings: &Settings) -> Result<RunResult, RunError> {
    run(settings, &Control::new(), &mut Silent)
}

/// What is wrong with a server's TLS, seen by the client.
fn fault(settings: &Settings) -> TlsFault {
    match load(settings) {
        Err(RunError::Tls { fault, .. }) => fault,
        other => panic!("{:?}", other.map(|result| result.summary.tally.outcomes())),
    }
}

#[test]
fn every_request_over_tls_is_paired_and_accounted_for() {
    let scenario = scenario(
        "[server]\ntls = true\nlatency = 'constant(1ms)'\nworkers = 2\n\
         [[client]]\nname = 'a'\ntarget = 'redis'\nconnections = 10\nduration = '300ms'\n\
         [[client]]\nname = 'b'\ntarget = 'redis'\nconnections = 4\npipeline = 16\nthreads = 2\n\
         rate = 3000\nresp = 3\nduration = '300ms'\n\
         [[client]]\nname = 'c'\ntarget = 'aerospike/test/x'\nconnections = 6\nthreads = 2\n\
         rate = 1500\nduration = '300ms'\n",
    );
    for part in &scenario.parts {
        let server = scenario.server_for(part);
        let evidence = real::run(server, part.settings.clone(), &Control::new()).unwrap();
        assert!(evidence.settings.tls.is_some());
        let judgement = judge(&evidence, &part.expect, None);
        let broken: Vec<_> = judgement
            .findings
            .iter()
            .filter(|finding| finding.kind == Kind::Proof && finding.verdict != Verdict::Pass)
            .collect();
        assert!(broken.is_empty(), "{}: {broken:#?}", part.name);
        assert!(judgement.accounting.answered > 100);
        // Under virtual time there is no TLS.
        let server = scenario.server_for(part);
        let refused = virtual_time::run(server, part.settings.clone(), 1000).unwrap_err();
        assert!(refused.to_string().starts_with("tls: "), "{refused}");
    }
}

#[test]
fn values_and_pipelines_larger_than_any_buffer_are_all_answered() {
    let server = server().start().unwrap();
    let mut settings = redis(server.redis_tls_addr().unwrap(), trusted(&server));
    settings.values.size = SizeDistribution::Fixed(300_000);
    settings.pipeline = Pipeline {
        depth: NonZeroU32::new(32).unwrap(),
        ..Pipeline::default()
    };
    settings.threads = NonZeroU32::new(2).unwrap();
    settings.keys.count = 8.try_into().unwrap();
    settings.timeout = Duration::from_secs(60);
    let outcomes = load(&settings).unwrap().summary.tally.outcomes();
    assert_eq!(outcomes.hits + outcomes.misses, 400, "{outcomes:?}");
}

#[test]
fn handshakes_are_timed_and_kernel_stamps_are_taken() {
    let server = server().start().unwrap();
    let mut settings = redis(server.redis_tls_addr().unwrap(), trusted(&server));
    settings.record_rows = true;
    settings.kernel_stamps = KernelStamps::Auto;
    let result = load(&settings).unwrap();
    assert_eq!(result.connects.len(), 4);
    for row in &result.connects {
        let (connected, secured) = (row.connected.unwrap(), row.secured.unwrap());
        assert!(row.begun <= connected && connected < secured, "{row:?}");
        assert!(secured <= row.logged_in.unwrap(), "{row:?}");
    }
    let stamped = result.rows.iter().filter(|row| row.kernel.is_some());
    let missing = |notice: &Notice| matches!(notice, Notice::NoKernelStamps { .. });
    if !result.summary.notices.iter().any(missing) {
        assert!(stamped.count() >= 390);
    }
}

#[test]
fn an_aerospike_cluster_is_learnt_and_loaded_over_tls() {
    let server = server().aerospike_port(None).start().unwrap();
    let address = server.aerospike_tls_addr().unwrap();
    let target = AerospikeTarget::new(address, "test", "set", 1, 1);
    let mut settings = redis(address, trusted(&server));
    settings.target = Target::Aerospike(target);
    let outcomes = load(&settings).unwrap().summary.tally.outcomes();
    assert_eq!(outcomes.hits + outcomes.misses, 400, "{outcomes:?}");
}

#[test]
fn a_server_that_is_not_trusted_or_not_the_one_ends_the_run() {
    let [ours, other] = [(); 2].map(|()| server().start().unwrap());
    let address = ours.redis_tls_addr().unwrap();
    assert_eq!(fault(&redis(address, trusted(&other))), TlsFault::Untrusted);
    let mut tls = trusted(&ours);
    tls.server_name = TlsSettings::new("example.org").unwrap().server_name;
    let expected = TlsFault::OtherName {
        wanted: "example.org".to_owned(),
        presented: "localhost, 127.0.0.1, ::1".to_owned(),
    };
    assert_eq!(fault(&redis(address, tls.clone())), expected);
    // Whoever asks for it gets no verification.
    load(&redis(address, tls.trusting(Trust::Anything))).unwrap();
    // An Aerospike cluster is met with the same questions.
    let seed = ours.aerospike_tls_addr().unwrap();
    let mut settings = redis(seed, trusted(&other));
    settings.target = Target::Aerospike(AerospikeTarget::new(seed, "test", "", 1, 1));
    assert_eq!(fault(&settings), TlsFault::Untrusted);
}

#[test]
fn a_server_without_tls_is_told_apart() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        socket
            .write_all(b"-ERR max number of clients reached\r\n")
            .unwrap();
        let _ = socket.read_to_end(&mut Vec::new());
    });
    let mut settings = redis(address, TlsSettings::new("localhost").unwrap());
    settings.tls = settings.tls.map(|tls| tls.trusting(Trust::Anything));
    settings.connections = NonZeroU32::MIN;
    assert_eq!(fault(&settings), TlsFault::NoTls);
    server.join().unwrap();
    // A RESP port takes the handshake for the beginning of a command and waits for its end.
    let server = MockServer::builder().start().unwrap();
    settings.connect_timeout = Duration::from_millis(500);
    for (address, words) in [
        (
            server.redis_addr().unwrap(),
            "timed out in the TLS handshake",
        ),
        (
            server.aerospike_addr().unwrap(),
            "the server closed the connection during the TLS handshake",
        ),
    ] {
        let Target::Redis(target) = &mut settings.target else {
            unreachable!("it is that of `redis`");
        };
        target.address = address.into();
        let error = load(&settings).unwrap_err();
        assert!(matches!(error, RunError::NoConnection { .. }), "{error:?}");
        assert!(error.to_string().contains(words), "{error}");
    }
}

/// Certificates in files of this test's own, removed in the end.
struct Certificates {
    folder: PathBuf,
    ca_pem: String,
    pair: (String, String),
}

impl Certificates {
    /// `params` are those of the certificate.
    fn new(name: &str, change: impl FnOnce(&mut rcgen::CertificateParams)) -> Self {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
        let folder = folder.join(format!("{name}.{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let mut ca = rcgen::CertificateParams::new(Vec::new()).unwrap();
        ca.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let ca_key = rcgen::KeyPair::generate().unwrap();
        let ca = rcgen::CertifiedIssuer::self_signed(ca, ca_key).unwrap();
        let key = rcgen::KeyPair::generate().unwrap();
        let mut params = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        change(&mut params);
        let certificate = params.signed_by(&key, &ca).unwrap();
        let pair = (certificate.pem(), key.serialize_pem());
        fs::write(folder.join("ca.pem"), ca.pem()).unwrap();
        fs::write(folder.join("cert.pem"), &pair.0).unwrap();
        fs::write(folder.join("key.pem"), &pair.1).unwrap();
        Self {
            folder,
            ca_pem: ca.pem(),
            pair,
        }
    }

    fn identity(&self) -> Option<Identity> {
        let (certificate, key) = &self.pair;
        Some(Identity::from_pem(certificate.as_bytes(), key.as_bytes()).unwrap())
    }
}

impl Drop for Certificates {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

#[test]
fn a_certificate_out_of_its_time_is_told_apart() {
    for (name, years, expected) in [
        ("expired", (2001, 2002), TlsFault::Expired),
        ("early", (3001, 3002), TlsFault::NotYetValid),
    ] {
        let files = Certificates::new(name, |params| {
            params.not_before = rcgen::date_time_ymd(years.0, 1, 1);
            params.not_after = rcgen::date_time_ymd(years.1, 1, 1);
        });
        let [cert, key] = ["cert.pem", "key.pem"].map(|name| files.folder.join(name));
        let server = server().tls_cert(cert, key).start().unwrap();
        let trust = Trust::from_pem(files.ca_pem.as_bytes()).unwrap();
        let tls = TlsSettings::new("localhost").unwrap().trusting(trust);
        let settings = redis(server.redis_tls_addr().unwrap(), tls);
        assert_eq!(fault(&settings), expected);
    }
}

#[test]
fn servers_that_want_to_know_the_client_are_shown_its_certificate() {
    let ours = Certificates::new("client", |_| ());
    let foreign = Certificates::new("foreign-client", |_| ());
    let ca = ours.folder.join("ca.pem");
    let server = server()
        .tls_client_ca(ca, ClientAuth::Required)
        .start()
        .unwrap();
    let address = server.redis_tls_addr().unwrap();
    let with = |identity| {
        let tls = TlsSettings {
            identity,
            ..trusted(&server)
        };
        redis(address, tls)
    };
    let result = load(&with(ours.identity())).unwrap();
    assert_eq!(result.summary.tally.outcomes().total(), 400);
    assert_eq!(fault(&with(None)), TlsFault::CertificateRequired);
    let refused = fault(&with(foreign.identity()));
    assert!(
        matches!(refused, TlsFault::CertificateRefused(_)),
        "{refused}"
    );
}

#[test]
fn the_program_ends_with_status_4_and_says_what_to_do() {
    let server = server().start().unwrap();
    let url = format!("rediss://{}", server.redis_tls_addr().unwrap());
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let args = ["kvlab", "bench", &url, "--tls-ca", "/dev/null"];
    kvlab::cli::run(args, &mut out, &mut err);
    let text = String::from_utf8(std::mem::take(&mut err)).unwrap();
    assert!(
        text.starts_with("error: --tls-ca: expected a file in PEM form"),
        "{text}"
    );
    let other = self::server().start().unwrap();
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let ca = folder.join(format!("other-ca.{}.pem", std::process::id()));
    fs::write(&ca, other.ca_pem().unwrap()).unwrap();
    let args = ["kvlab", "bench", &url, "--tls-ca", ca.to_str().unwrap()];
    let status = kvlab::cli::run(args, &mut out, &mut err);
    fs::remove_file(&ca).unwrap();
    assert_eq!(status.code(), 4);
    let text = String::from_utf8(err).unwrap();
    assert!(
        text.contains("--tls-ca FILE names the authority to trust"),
        "{text}"
    );
    assert_eq!(String::from_utf8(out).unwrap(), "");
}
