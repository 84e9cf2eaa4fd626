//! Who logs in: `--user` and `--password`, in place of those in the URL.

use clap::Args;

use super::TargetUrl;
use super::usage::UsageError;
use crate::settings::{AerospikeLogin, Password, Target};

/// Options of the login.
#[derive(Args, Clone, Default)]
pub struct LoginArgs {
    /// User to log in as, in place of the one in the URL
    #[arg(long, value_name = "NAME", help_heading = "Login")]
    pub user: Option<String>,

    /// Password of the user, in place of the one in the URL. Other users of the machine see options
    /// of programs, and the URL too
    #[arg(long, value_name = "TEXT", help_heading = "Login")]
    pub password: Option<String>,
}

impl std::fmt::Debug for LoginArgs {
    /// Never shows the password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LoginArgs")
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}

impl LoginArgs {
    /// Writes the login of options and URL into the target.
    pub(super) fn apply(&self, url: &TargetUrl, target: &mut Target) -> Result<(), UsageError> {
        let user = self.user.as_ref().or(url.user.as_ref());
        let password = self.password.as_ref().or(url.password.as_ref());
        if user.is_some() && password.is_none() {
            return Err(UsageError::new("--user", "--password beside it", "none"));
        }
        match target {
            Target::Redis(target) => {
                target.user = user.cloned();
                target.password = password.cloned().map(Password::from);
            }
            Target::Aerospike(target) => {
                target.login = match (user, password) {
                    (Some(user), Some(password)) => {
                        Some(AerospikeLogin::new(user, password.as_str()))
                    }
                    (None, Some(_)) => {
                        return Err(UsageError::new(
                            "--user, URL",
                            "a user, which a login to Aerospike needs",
                            "a password alone",
                        ));
                    }
                    (_, None) => None,
                };
            }
        }
        Ok(())
    }
}
