//! The options as they were resolved, as `--show-config` and the JSON print them.
//!
//! The names and the order are those of the original, as its recorded outputs show them. What it
//! prints as `(null)` or `null` is `None` here. The password is never printed.

/// The resolved options that are printed.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "each field is the option of that name")]
#[expect(clippy::struct_excessive_bools, reason = "they are switches")]
pub struct Config {
    pub server: String,
    pub port: u16,
    pub uri: String,
    pub unix_socket: Option<String>,
    pub address_family: AddressFamily,
    pub protocol: String,
    pub out_file: Option<String>,
    pub tls: bool,
    pub cert: Option<String>,
    pub key: Option<String>,
    pub cacert: Option<String>,
    pub tls_skip_verify: bool,
    pub sni: Option<String>,
    pub client_stats: Option<String>,
    pub run_count: u32,
    pub debug: u32,
    /// Per client; 0 with `test_time`.
    pub requests: u64,
    /// Per connection and second; 0 without a limit.
    pub rate_limit: u64,
    pub clients: u32,
    pub threads: u32,
    /// Seconds; 0 with `requests`.
    pub test_time: u64,
    pub ratio: (u64, u64),
    pub pipeline: u32,
    pub data_size: u64,
    pub data_offset: u64,
    pub random_data: bool,
    pub data_size_range: (u64, u64),
    pub data_size_list: String,
    pub data_size_pattern: String,
    pub expiry_range: (u64, u64),
    pub data_import: Option<String>,
    pub data_verify: bool,
    pub verify_only: bool,
    pub generate_keys: bool,
    pub key_prefix: Option<String>,
    pub key_minimum: u64,
    pub key_maximum: u64,
    pub key_pattern: String,
    pub key_stddev: f64,
    pub key_median: f64,
    pub key_zipf_exp: f64,
    pub reconnect_interval: u64,
    pub connection_timeout: u64,
    pub thread_conn_start_min_jitter_micros: u64,
    pub thread_conn_start_max_jitter_micros: u64,
    pub multi_key_get: u64,
    /// As given; the password in it is masked wherever it is printed.
    pub authenticate: String,
    pub select_db: u64,
    pub no_expiry: bool,
    pub wait_ratio: (u64, u64),
    pub num_slaves: (u64, u64),
    pub wait_timeout: (u64, u64),
    pub json_out_file: Option<String>,
    pub print_all_runs: bool,
    pub staircase: Option<Staircase>,
    /// Our own: what every random stream of the runs was made from.
    pub seed: u64,
}

/// `--clients-start`, `--clients-step`, `--step-duration`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Staircase {
    /// Clients of each thread in the first step.
    pub start: u32,
    /// Clients of each thread that each further step adds.
    pub step: u32,
    /// Seconds of a step.
    pub duration: u64,
}

/// `-4`, `-6`, or neither.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AddressFamily {
    /// Neither.
    #[default]
    Unspecified,
    /// `-4`.
    Ipv4,
    /// `-6`.
    Ipv6,
}

impl AddressFamily {
    /// As it is printed.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unspecified => "Unspecified",
            Self::Ipv4 => "AF_INET",
            Self::Ipv6 => "AF_INET6",
        }
    }
}

/// The defaults of the original.
impl Default for Config {
    fn default() -> Self {
        Self {
            server: "localhost".to_owned(),
            port: 6379,
            uri: String::new(),
            unix_socket: None,
            address_family: AddressFamily::Unspecified,
            protocol: "redis".to_owned(),
            out_file: None,
            tls: false,
            cert: None,
            key: None,
            cacert: None,
            tls_skip_verify: false,
            sni: None,
            client_stats: None,
            run_count: 1,
            debug: 0,
            requests: 10_000,
            rate_limit: 0,
            clients: 50,
            threads: 4,
            test_time: 0,
            ratio: (1, 10),
            pipeline: 1,
            data_size: 32,
            data_offset: 0,
            random_data: false,
            data_size_range: (0, 0),
            data_size_list: String::new(),
            data_size_pattern: "R".to_owned(),
            expiry_range: (0, 0),
            data_import: None,
            data_verify: false,
            verify_only: false,
            generate_keys: false,
            key_prefix: Some("memtier-".to_owned()),
            key_minimum: 0,
            key_maximum: 10_000_000,
            key_pattern: "R:R".to_owned(),
            key_stddev: 0.0,
            key_median: 0.0,
            key_zipf_exp: 0.0,
            reconnect_interval: 0,
            connection_timeout: 0,
            thread_conn_start_min_jitter_micros: 0,
            thread_conn_start_max_jitter_micros: 0,
            multi_key_get: 0,
            authenticate: String::new(),
            select_db: 0,
            no_expiry: false,
            wait_ratio: (0, 0),
            num_slaves: (0, 0),
            wait_timeout: (0, 0),
            json_out_file: None,
            print_all_runs: false,
            staircase: None,
            seed: 0,
        }
    }
}

/// Credentials as they are printed: the user stays, the password does not.
#[must_use]
pub fn masked(credentials: &str) -> String {
    match credentials.split_once(':') {
        _ if credentials.is_empty() => String::new(),
        Some((user, _)) => format!("{user}:{MASK}"),
        None => MASK.to_owned(),
    }
}

/// A URI as it is printed: without its password.
#[must_use]
pub fn masked_uri(uri: &str) -> String {
    let Some((scheme, rest)) = uri.split_once("://") else {
        return uri.to_owned();
    };
    match rest.split_once('@') {
        Some((credentials, host)) => format!("{scheme}://{}@{host}", masked(credentials)),
        None => uri.to_owned(),
    }
}

const MASK: &str = "***";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_form_of_credentials_shows_the_password() {
        for (given, shown) in [
            ("", ""),
            ("secret", "***"),
            ("bob:secret", "bob:***"),
            (":with:colon", ":***"),
        ] {
            assert_eq!(masked(given), shown);
        }
    }

    #[test]
    fn a_uri_is_shown_without_its_password() {
        for (given, shown) in [
            ("", ""),
            ("redis://host:1/2", "redis://host:1/2"),
            ("rediss://bob:secret@host:1/2", "rediss://bob:***@host:1/2"),
            ("redis://secret@host", "redis://***@host"),
        ] {
            assert_eq!(masked_uri(given), shown);
        }
    }
}
