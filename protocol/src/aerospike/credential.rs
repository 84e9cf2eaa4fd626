//! The credential of a login: a password as every client hashes it.
//!
//! ```text
//! $2a$10$7EqJtq98hPqEX7fNZaFWoO................................
//!  |  |  |                     |
//!  |  |  |                     31 characters, the hash
//!  |  |  22 characters, the salt, which is always this one
//!  |  2^10 rounds
//!  bcrypt
//! ```
//!
//! As the salt is fixed, a server compares what it is sent with what it was sent when the user was
//! made; it never sees the password. Source: the captured logins in `golden/aerospike/security.json`
//! for the form, the Rust client for known hashes.

use base64::Engine as _;
use base64::alphabet::BCRYPT;
use base64::engine::general_purpose::{GeneralPurpose, NO_PAD};

/// Length of a credential in bytes.
pub const CREDENTIAL_LEN: usize = 60;

/// The credential of a login with `password`. Bytes behind the 72nd do not count, nor does anything
/// behind a NUL.
///
/// Takes some 50 ms by design: compute it once, not for every connection.
#[must_use]
pub fn credential(password: &[u8]) -> [u8; CREDENTIAL_LEN] {
    let text = password.split(|byte| *byte == 0).next().unwrap_or_default();
    // The hash is one of a text that ends with a NUL, unless that is cut off.
    let mut key = text.to_vec();
    key.push(0);
    key.truncate(LONGEST_KEY);
    let hash = bcrypt::bcrypt(COST, SALT, &key);
    // Of the 24 bytes the last is not written down.
    let shown = hash.get(..SHOWN).unwrap_or_default();
    let engine = GeneralPurpose::new(&BCRYPT, NO_PAD);
    let text = [PREFIX, &engine.encode(SALT), &engine.encode(shown)].concat();
    let mut credential = [b'.'; CREDENTIAL_LEN];
    for (place, byte) in credential.iter_mut().zip(text.bytes()) {
        *place = byte;
    }
    credential
}

/// Variant and cost, as they are written.
const PREFIX: &str = "$2a$10$";
/// Binary logarithm of the number of rounds.
const COST: u32 = 10;
/// What `7EqJtq98hPqEX7fNZaFWoO` stands for.
const SALT: [u8; 16] = [
    244, 107, 11, 190, 207, 254, 141, 27, 6, 103, 216, 79, 109, 193, 216, 169,
];
/// The longest key that bcrypt takes.
const LONGEST_KEY: usize = 72;
/// Bytes of a hash that are written down.
const SHOWN: usize = 23;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_those_that_clients_send() {
        // Known answers of another implementation, the tests of the Aerospike client for Rust.
        for (password, hash) in [
            ("", "LCkFexA7A9eoJ0Ew.mTDdk.E60D.9zS"),
            ("password", "qUH6KN8IKy3Yk5Kz..RHGKNAUCoP/LG"),
            ("aerospike", "g3vLO9BrDMi.IgzR5fG6wXhnUUDTrIG"),
            ("p@ss w\u{f6}rd", "vOHC3TQiAAgdPnOsxztx/kKSmQ9nwIm"),
            (
                "a-very-long-password-that-exceeds-the-72-byte-bcrypt-limit-by-a-fair-margin-xyz",
                "TJRN/01vjjPR6EbpF8dZ1pUhRxgu35a",
            ),
        ] {
            let expected = format!("$2a$10$7EqJtq98hPqEX7fNZaFWoO{hash}");
            assert_eq!(credential(password.as_bytes()), expected.as_bytes());
        }
    }
}
