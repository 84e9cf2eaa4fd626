//! The scenarios that come with the program. They are the files of the folder `scenarios`, built into
//! it, so that an installed program has them too; as files they are the same.

use super::{Scenario, ScenarioError, TierName};

impl Scenario {
    /// Names and texts of the scenarios that are built in, by name.
    #[must_use]
    pub fn shipped() -> &'static [(&'static str, &'static str)] {
        FILES
    }

    /// The built-in scenario of a name, if there is one.
    ///
    /// # Errors
    /// Never; a test parses them all.
    pub fn named(name: &str) -> Option<Result<Self, ScenarioError>> {
        let (name, text) = FILES.iter().find(|(known, _)| *known == name)?;
        Some(Self::parse(name, text))
    }

    /// The built-in scenarios of a tier, by name.
    ///
    /// # Errors
    /// Never; a test parses them all.
    pub fn of_tier(tier: TierName) -> Result<Vec<Self>, ScenarioError> {
        let all = FILES.iter().map(|(name, text)| Self::parse(name, text));
        let belongs = |scenario: &Result<Self, _>| match scenario {
            Ok(scenario) => scenario.tiers.contains(&tier),
            Err(_) => true,
        };
        all.filter(belongs).collect()
    }
}

/// One line for each file.
macro_rules! files {
    ($($name:literal),+ $(,)?) => {
        [$(($name, include_str!(concat!("../../../scenarios/", $name, ".toml")))),+]
    };
}

const FILES: &[(&str, &str)] = &files![
    "accounts",
    "connections",
    "constant-50",
    "faults",
    "fixed-hash",
    "freeze",
    "freeze-one-slot",
    "full-closed",
    "full-open",
    "injection",
    "limits",
    "limits-aerospike",
    "limits-redis",
    "long-freeze",
    "matrix",
    "queue",
    "quickstart",
    "repeat",
    "smoke",
    "ten-minutes",
];
