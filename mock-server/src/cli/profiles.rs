//! The list of profiles: services with their pages, plans with what they allow.

use std::fmt;

use crate::profile::{Profile, ProfileError};

/// All profiles, to be printed.
pub(super) struct ProfileList(Vec<Profile>);

impl ProfileList {
    pub(super) fn new() -> Result<Self, ProfileError> {
        Profile::all().map(Self)
    }
}

impl fmt::Display for ProfileList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.0.iter().map(|profile| profile.name.len()).max();
        let width = width.unwrap_or_default();
        let mut service = "";
        for profile in &self.0 {
            if profile.service() != service {
                if !service.is_empty() {
                    writeln!(f)?;
                }
                service = profile.service();
                for source in &profile.sources {
                    let (page, day, gives) = (&source.page, source.day(), &source.gives);
                    writeln!(f, "# {day}  {page}  {gives}")?;
                }
            }
            let most = profile.settings.max_connections.and_then(|most| most.0);
            let connections = most.map_or_else(|| "any".to_owned(), |most| most.to_string());
            let (name, title) = (&profile.name, &profile.title);
            writeln!(f, "{name:width$}  {connections:>7} connections  {title}")?;
        }
        Ok(())
    }
}
