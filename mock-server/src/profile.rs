//! Profiles: what managed services and plain servers allow, as files with their sources.
//!
//! A file of the folder `profiles`, built into the program, describes a service:
//!
//! ```toml
//! title = "A cache"                          # what it is
//! [[source]]                                 # where the figures come from
//! page = "https://example.com/limits"
//! dated = "2025-12-01"                       # the page's own date, if it has one
//! read = "2026-11-30"                        # when it was read
//! gives = "connections"
//! [guess]                                    # what no page says, by setting
//! accept-limit = "connects hang, as behind a packet filter"
//! [missing]                                  # what the service does and this server does not
//! cluster = "always in cluster mode"
//! [settings]                                 # settings of every plan, as in a configuration file
//! idle-timeout = "300s"
//! [plan.small]                               # a plan: its title, and settings of its own
//! title = "1 GB"
//! max-connections = 1000
//! ```
//!
//! A profile is named `SERVICE:PLAN`; `FILE.toml:PLAN` reads a file of one's own. Its settings are those of
//! a configuration file, and anything that is given otherwise beats them.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use jiff::civil::Date;
use serde::Deserialize;

use crate::cli::Settings;

/// The services that are built in, with their files.
const SERVICES: [(&str, &str); 9] = [
    ("aerospike", include_str!("../profiles/aerospike.toml")),
    ("aiven", include_str!("../profiles/aiven.toml")),
    ("azure", include_str!("../profiles/azure.toml")),
    ("elasticache", include_str!("../profiles/elasticache.toml")),
    ("heroku", include_str!("../profiles/heroku.toml")),
    ("memorystore", include_str!("../profiles/memorystore.toml")),
    ("redis", include_str!("../profiles/redis.toml")),
    ("rediscloud", include_str!("../profiles/rediscloud.toml")),
    ("upstash", include_str!("../profiles/upstash.toml")),
];

/// What a plan of a service allows, and how that is known.
#[derive(Debug, Clone)]
pub struct Profile {
    /// Its name, as in `aiven:startup-4`.
    pub name: String,
    /// The service and the plan in words.
    pub title: String,
    /// Where its figures come from.
    pub sources: Vec<Source>,
    /// What no page says and was guessed, by setting.
    pub guesses: BTreeMap<String, String>,
    /// What the service does and this server does not.
    pub missing: BTreeMap<String, String>,
    /// Its settings.
    pub settings: Settings,
}

/// A page with figures.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// Its address.
    pub page: String,
    /// The date it bears, if it bears one.
    pub dated: Option<Day>,
    /// When it was read.
    pub read: Day,
    /// What it says.
    pub gives: String,
}

/// A day of the calendar, in text `2026-11-30`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct Day(Date);

impl TryFrom<String> for Day {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let date = text.parse().map(Self);
        date.map_err(|_| format!("'{text}' is not a day: expected one as in 2026-11-30"))
    }
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A profile that cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// The name has not the form of one.
    #[error(
        "'{0}' is not a profile: expected SERVICE:PLAN, as in aiven:startup-4 (--list-profiles names them all)"
    )]
    Form(String),
    /// There is no such service.
    #[error(
        "there is no service '{0}': expected aerospike, aiven, azure, elasticache, heroku, memorystore, redis, rediscloud, upstash, or a file that ends in .toml"
    )]
    Service(String),
    /// The service has no such plan.
    #[error("'{service}' has no plan '{plan}': expected {plans}")]
    Plan {
        /// The service.
        service: String,
        /// What was asked for.
        plan: String,
        /// What there is.
        plans: String,
    },
    /// A file of the user's own cannot be read.
    #[error("cannot read the profile {file}: {source}")]
    File {
        /// Its name.
        file: String,
        /// Why.
        source: std::io::Error,
    },
    /// A file says what is not understood.
    #[error("in the profile {file}: {source}")]
    Content {
        /// Its name.
        file: String,
        /// What and where.
        source: Box<toml::de::Error>,
    },
}

/// A file as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Service {
    title: String,
    #[serde(default)]
    source: Vec<Source>,
    #[serde(default)]
    guess: BTreeMap<String, String>,
    #[serde(default)]
    missing: BTreeMap<String, String>,
    settings: toml::Table,
    plan: toml::Table,
}

impl Profile {
    /// The profile of that name.
    ///
    /// # Errors
    /// When there is none, or its file is not understood.
    pub fn find(name: &str) -> Result<Self, ProfileError> {
        // A file's name may have colons, a plan's has none.
        let (service, plan) = name
            .rsplit_once(':')
            .ok_or_else(|| ProfileError::Form(name.to_owned()))?;
        Service::read(service)?.profile(service, plan)
    }

    /// All that are built in, by service, in the order of their files.
    ///
    /// # Errors
    /// When a file is not understood.
    pub fn all() -> Result<Vec<Self>, ProfileError> {
        let mut all = Vec::new();
        for (name, _) in SERVICES {
            let service = Service::read(name)?;
            for plan in service.plan.keys() {
                all.push(service.profile(name, plan)?);
            }
        }
        Ok(all)
    }

    /// The service, which is the part of the name before the plan.
    #[must_use]
    pub fn service(&self) -> &str {
        self.name
            .rsplit_once(':')
            .map_or("", |(service, _)| service)
    }

    /// Sources that say what they say for more than a year, on the day `today`.
    pub fn outdated(&self, today: Day) -> impl Iterator<Item = &Source> {
        let year_ago = today.0.saturating_sub(jiff::Span::new().years(1));
        self.sources
            .iter()
            .filter(move |source| source.day().0 < year_ago)
    }

    /// What is known about the figures, as comments of a configuration file.
    pub fn notes(&self) -> impl fmt::Display {
        Notes(self.clone())
    }
}

impl Source {
    /// The date it bears, or else when it was read.
    #[must_use]
    pub fn day(&self) -> Day {
        self.dated.unwrap_or(self.read)
    }
}

impl Day {
    /// The day on which this is called, in UTC.
    #[must_use]
    pub fn today() -> Self {
        let today = jiff::tz::Offset::UTC.to_datetime(jiff::Timestamp::now());
        Self(today.date())
    }
}

impl Service {
    fn read(name: &str) -> Result<Self, ProfileError> {
        let is_file = Path::new(name).extension().is_some_and(|end| end == "toml");
        let built_in = SERVICES.iter().find(|(service, _)| *service == name);
        let text = match built_in {
            Some((_, text)) => (*text).to_owned(),
            None if is_file => {
                std::fs::read_to_string(name).map_err(|source| ProfileError::File {
                    file: name.to_owned(),
                    source,
                })?
            }
            None => return Err(ProfileError::Service(name.to_owned())),
        };
        toml::from_str(&text).map_err(|source| not_understood(name, source))
    }

    fn profile(&self, service: &str, plan: &str) -> Result<Profile, ProfileError> {
        let Some(own) = self.plan.get(plan).and_then(toml::Value::as_table) else {
            let plans: Vec<&str> = self.plan.keys().map(String::as_str).collect();
            return Err(ProfileError::Plan {
                service: service.to_owned(),
                plan: plan.to_owned(),
                plans: plans.join(", "),
            });
        };
        let mut settings = self.settings.clone();
        settings.extend(own.clone());
        let title = match settings.remove("title") {
            Some(toml::Value::String(title)) => format!("{}, {title}", self.title),
            _ => self.title.clone(),
        };
        let name = format!("{service}:{plan}");
        let settings = settings
            .try_into()
            .map_err(|source| not_understood(&name, source))?;
        Ok(Profile {
            name,
            title,
            sources: self.source.clone(),
            guesses: self.guess.clone(),
            missing: self.missing.clone(),
            settings,
        })
    }
}

fn not_understood(file: &str, source: toml::de::Error) -> ProfileError {
    ProfileError::Content {
        file: file.to_owned(),
        source: Box::new(source),
    }
}

struct Notes(Profile);

impl fmt::Display for Notes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let profile = &self.0;
        writeln!(f, "# profile {}: {}", profile.name, profile.title)?;
        for source in &profile.sources {
            let Source { page, gives, .. } = source;
            match source.dated {
                Some(day) => writeln!(f, "# source: {page} (of {day}): {gives}")?,
                None => writeln!(f, "# source: {page} (read {}): {gives}", source.read)?,
            }
        }
        for (setting, guess) in &profile.guesses {
            writeln!(f, "# guess: {setting}: {guess}")?;
        }
        for (what, missing) in &profile.missing {
            writeln!(f, "# missing: {what}: {missing}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::OrNone;

    fn day(text: &str) -> Day {
        Day::try_from(text.to_owned()).unwrap()
    }

    #[test]
    fn every_profile_loads_with_its_pages_and_makes_a_server() {
        let all = Profile::all().unwrap();
        assert!(all.len() > 60, "{}", all.len());
        for profile in all {
            let name = &profile.name;
            assert!(!profile.sources.is_empty(), "{name}");
            for source in &profile.sources {
                assert!(source.page.starts_with("https://"), "{name}");
                assert!(source.day() <= source.read, "{name}");
            }
            profile
                .settings
                .resolve()
                .unwrap_or_else(|error| panic!("{name}: {error}"));
            let again = Profile::find(name).unwrap();
            assert_eq!(again.settings, profile.settings);
        }
    }

    /// From the services' pages, as cited in the files.
    #[test]
    fn plans_allow_what_their_pages_say() {
        for (name, connections) in [
            ("aiven:hobbyist", 10_000),
            ("aiven:startup-4", 4 * 4096),
            ("aiven:premium-112", 4 * 1024 * 112),
            ("elasticache:node", 65_000),
            ("azure:c0", 256),
            ("azure:c6", 20_000),
            ("azure:p4", 40_000),
            ("memorystore:basic", 65_000),
            ("memorystore:valkey-shared-core-nano", 5_000),
            ("rediscloud:30mb", 30),
            ("rediscloud:flex-100gb", 10_000),
            ("heroku:mini", 20),
            ("heroku:premium-14", 65_000),
            ("aerospike:default", 15_000),
        ] {
            let profile = Profile::find(name).unwrap();
            let expected = Some(OrNone(Some(connections)));
            assert_eq!(profile.settings.max_connections, expected, "{name}");
        }
    }

    #[test]
    fn a_plan_beats_its_service() {
        let file = std::env::temp_dir().join(format!("kvlab-profile-{}.toml", std::process::id()));
        let text = "title = \"Mine\"\n[settings]\nseed = 1\nworkers = 2\n[plan.a]\n\
                    title = \"small\"\nseed = 7\n[plan.b]\n";
        std::fs::write(&file, text).unwrap();
        let name = |plan| format!("{}:{plan}", file.display());
        let small = Profile::find(&name("a")).unwrap();
        assert_eq!(small.title, "Mine, small");
        assert_eq!(
            (small.settings.seed, small.settings.workers),
            (Some(7), Some(2))
        );
        let plain = Profile::find(&name("b")).unwrap();
        assert_eq!(
            (plain.title.as_str(), plain.settings.seed),
            ("Mine", Some(1))
        );
        std::fs::remove_file(&file).unwrap();
    }

    #[test]
    fn what_cannot_be_found_is_told_with_what_there_is() {
        let message = |name| Profile::find(name).unwrap_err().to_string();
        assert!(message("aiven").contains("expected SERVICE:PLAN"));
        assert!(message("aivn:startup-4").contains("there is no service 'aivn'"));
        let plans = message("azure:c7");
        assert!(
            plans.contains("'azure' has no plan 'c7'") && plans.contains("c6, p1"),
            "{plans}"
        );
        assert!(message("no-such.toml:a").contains("cannot read the profile no-such.toml"));
    }

    #[test]
    fn a_source_is_outdated_after_a_year() {
        let profile = Profile::find("heroku:mini").unwrap();
        let outdated = |today| profile.outdated(day(today)).count();
        assert_eq!(outdated("2025-10-11"), 0);
        assert_eq!(outdated("2025-10-12"), 1);
        assert_eq!(outdated("2025-12-05"), 2);
    }

    #[test]
    fn the_notes_name_pages_guesses_and_what_is_missing() {
        let notes = Profile::find("elasticache:serverless")
            .unwrap()
            .notes()
            .to_string();
        for part in [
            "# profile elasticache:serverless: Amazon ElastiCache for Valkey and Redis OSS, serverless\n",
            "RedisConfiguration.html (read 2026-11-30): serverless: 3,999 arguments",
            "# guess: block-form: ",
            "# missing: cluster: ",
        ] {
            assert!(notes.contains(part), "{notes}");
        }
        assert!(notes.lines().all(|line| line.starts_with("# ")));
    }
}
