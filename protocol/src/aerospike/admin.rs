//! Security messages: login, authentication, users and roles.
//!
//! | offset | bytes | meaning |
//! |---|---|---|
//! | 0 | 1 | scheme, 0 |
//! | 1 | 1 | result code, 0 in requests |
//! | 2 | 1 | command |
//! | 3 | 1 | number of fields |
//! | 4 | 12 | zero |
//! | 16 | | fields: 4 bytes size (with the id), 1 byte id, data |
//!
//! A Community server answers all of them with
//! [`SecurityNotSupported`](ResultCode::SecurityNotSupported) and keeps the connection.

use bytes::{BufMut, BytesMut};

use super::proto::{Kind, begin_frame, finish_frame};
use super::result_code::ResultCode;
use super::writer::wire_len;
use crate::cursor::Cursor;

/// Bytes of a security header.
pub const SECURITY_HEADER_LEN: usize = 16;

macro_rules! bytes_with_names {
    ($(#[$doc:meta])* $name:ident { $($code:literal $variant:ident $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name {
            $(#[doc = concat!($text, " (", stringify!($code), ").")] $variant,)*
            /// A byte without a name here.
            Other(u8),
        }

        impl $name {
            /// The meaning of a byte; an unknown one is kept.
            #[must_use]
            pub const fn from_byte(byte: u8) -> Self {
                match byte {
                    $($code => Self::$variant,)*
                    other => Self::Other(other),
                }
            }

            /// The byte on the wire.
            #[must_use]
            pub const fn byte(self) -> u8 {
                match self {
                    $(Self::$variant => $code,)*
                    Self::Other(other) => other,
                }
            }
        }
    };
}

bytes_with_names! {
    /// What a security message asks for.
    Command {
        0 Authenticate "Authenticate a further connection",
        1 CreateUser "Create a user",
        2 DropUser "Drop a user",
        3 SetPassword "Set a password",
        4 ChangePassword "Change the own password",
        5 GrantRoles "Grant roles",
        6 RevokeRoles "Revoke roles",
        9 QueryUsers "List users",
        10 CreateRole "Create a role",
        11 DropRole "Drop a role",
        12 GrantPrivileges "Grant privileges",
        13 RevokePrivileges "Revoke privileges",
        14 SetWhitelist "Set a whitelist",
        15 SetQuotas "Set quotas",
        16 QueryRoles "List roles",
        20 Login "Log in",
    }
}

bytes_with_names! {
    /// What a field of a security message holds.
    AdminFieldKind {
        0 User "User name",
        1 Password "Password",
        2 OldPassword "Old password",
        3 Credential "Hashed password",
        4 ClearPassword "Password in clear, for external login",
        5 SessionToken "Session token",
        6 SessionTtl "Seconds the session lives, 4 bytes",
        10 Roles "Roles",
        11 Role "Role",
        12 Privileges "Privileges",
        13 Whitelist "Whitelist",
        14 ReadQuota "Read quota",
        15 WriteQuota "Write quota",
        16 ReadInfo "Read statistics",
        17 WriteInfo "Write statistics",
        18 Connections "Open connections",
    }
}

/// A security message that does not hold together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AdminError {
    /// The body is shorter than the header.
    #[error("security message of {found} bytes, at least {SECURITY_HEADER_LEN} are needed")]
    ShortHeader {
        /// Bytes found.
        found: usize,
    },
    /// The fields do not fit.
    #[error("the {announced} announced fields do not fit the security message")]
    Fields {
        /// The count in the header.
        announced: u8,
    },
    /// Bytes are left over behind the last field.
    #[error("{0} bytes left over behind the last field")]
    Trailing(usize),
}

/// A security message whose sizes were checked.
#[derive(Debug, Clone, Copy)]
pub struct AdminView<'a> {
    /// The scheme, 0.
    pub scheme: u8,
    /// The outcome; `Ok` in requests.
    pub result: ResultCode,
    /// What is asked for; 0 in answers.
    pub command: Command,
    /// How many fields there are.
    pub n_fields: u8,
    fields: &'a [u8],
}

/// A field of a security message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AdminField<'a> {
    /// What the data is.
    pub kind: AdminFieldKind,
    /// The data.
    pub data: &'a [u8],
}

impl<'a> AdminView<'a> {
    /// Parses a body that holds exactly one message.
    ///
    /// # Errors
    /// [`AdminError`] when count, sizes and length do not agree.
    pub fn parse(body: &'a [u8]) -> Result<Self, AdminError> {
        let (view, rest) = Self::parse_prefix(body)?;
        match rest.len() {
            0 => Ok(view),
            left => Err(AdminError::Trailing(left)),
        }
    }

    /// Parses the first message of a body that may hold several, as answers to queries do.
    ///
    /// # Errors
    /// [`AdminError`] when count, sizes and length do not agree.
    pub fn parse_prefix(body: &'a [u8]) -> Result<(Self, &'a [u8]), AdminError> {
        let mut cursor = Cursor::new(body);
        let Some(&[scheme, result, command, n_fields, ..]) = cursor.array::<SECURITY_HEADER_LEN>()
        else {
            return Err(AdminError::ShortHeader { found: body.len() });
        };
        let fields =
            super::field::take_fields(&mut cursor, n_fields.into()).ok_or(AdminError::Fields {
                announced: n_fields,
            })?;
        let result = ResultCode::from_byte(result);
        let command = Command::from_byte(command);
        Ok((
            Self {
                scheme,
                result,
                command,
                n_fields,
                fields,
            },
            cursor.rest(),
        ))
    }

    /// The fields in wire order.
    pub fn fields(&self) -> impl Iterator<Item = AdminField<'a>> + use<'a> {
        // The layout is that of message fields; only the numbers mean something else.
        super::field::Fields::new(self.fields).map(|field| AdminField {
            kind: AdminFieldKind::from_byte(field.kind.byte()),
            data: field.data,
        })
    }

    /// The data of the first field of this kind.
    #[must_use]
    pub fn field(&self, kind: AdminFieldKind) -> Option<&'a [u8]> {
        self.fields()
            .find(|field| field.kind == kind)
            .map(|field| field.data)
    }
}

/// Writes a whole security frame.
///
/// # Panics
/// When there are more than 255 fields.
pub fn put_admin(
    result: ResultCode,
    command: Command,
    fields: &[AdminField<'_>],
    out: &mut BytesMut,
) {
    let frame = begin_frame(Kind::Security, out);
    let n_fields = u8::try_from(fields.len()).expect("at most 255 fields");
    out.put_slice(&[0, result.byte(), command.byte(), n_fields]);
    out.put_bytes(0, SECURITY_HEADER_LEN - 4);
    for field in fields {
        out.put_u32(wire_len(field.data.len() + 1));
        out.put_u8(field.kind.byte());
        out.put_slice(field.data);
    }
    finish_frame(frame, out);
}

/// Writes the answer of a server to any security message: a result code and nothing else.
pub fn put_answer(result: ResultCode, out: &mut BytesMut) {
    put_admin(result, Command::Authenticate, &[], out);
}

/// Writes a login with a hashed password.
pub fn put_login(user: &[u8], credential: &[u8], out: &mut BytesMut) {
    let fields = [
        AdminField {
            kind: AdminFieldKind::User,
            data: user,
        },
        AdminField {
            kind: AdminFieldKind::Credential,
            data: credential,
        },
    ];
    put_admin(ResultCode::Ok, Command::Login, &fields, out);
}

/// Writes the authentication of a further connection with the token of a login.
pub fn put_authenticate(user: &[u8], token: &[u8], out: &mut BytesMut) {
    let fields = [
        AdminField {
            kind: AdminFieldKind::User,
            data: user,
        },
        AdminField {
            kind: AdminFieldKind::SessionToken,
            data: token,
        },
    ];
    put_admin(ResultCode::Ok, Command::Authenticate, &fields, out);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn community_answer_has_the_bytes_of_a_real_server() {
        let mut out = BytesMut::new();
        put_answer(ResultCode::SecurityNotSupported, &mut out);
        let mut expected = vec![2, 2, 0, 0, 0, 0, 0, 16, 0, 51, 0, 0];
        expected.extend([0; 12]);
        assert_eq!(out, expected);
    }

    #[test]
    fn login_is_read_back() {
        let mut out = BytesMut::new();
        put_login(b"admin", b"x", &mut out);
        let view = AdminView::parse(&out[8..]).unwrap();
        assert_eq!((view.command, view.n_fields), (Command::Login, 2));
        assert_eq!(view.field(AdminFieldKind::User), Some(&b"admin"[..]));
        assert_eq!(view.field(AdminFieldKind::Credential), Some(&b"x"[..]));
        assert_eq!(view.field(AdminFieldKind::SessionToken), None);
    }

    #[test]
    fn broken_messages_are_errors() {
        let mut out = BytesMut::new();
        put_authenticate(b"u", b"token", &mut out);
        let body = &out[8..];
        for cut in 0..SECURITY_HEADER_LEN {
            let error = AdminView::parse(&body[..cut]).unwrap_err();
            assert_eq!(error, AdminError::ShortHeader { found: cut });
        }
        for cut in SECURITY_HEADER_LEN..body.len() {
            let error = AdminView::parse(&body[..cut]).unwrap_err();
            assert_eq!(error, AdminError::Fields { announced: 2 });
        }
        let longer = [body, &[0]].concat();
        assert_eq!(
            AdminView::parse(&longer).unwrap_err(),
            AdminError::Trailing(1)
        );
    }

    #[test]
    fn every_byte_survives() {
        for byte in 0..=u8::MAX {
            assert_eq!(Command::from_byte(byte).byte(), byte);
            assert_eq!(AdminFieldKind::from_byte(byte).byte(), byte);
        }
    }
}
