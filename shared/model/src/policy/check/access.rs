//! Who may use a profile, and who may write what is otherwise written by us.

use super::{Checked, Checker, values};
use crate::{
    names::LABEL,
    policy::{
        Allow,
        file::{profile::AllowFile, value::Given},
    },
};

impl Checker<'_> {
    pub(super) fn allow(&self, file: AllowFile) -> Checked<Allow> {
        let namespaces = file.namespaces.unwrap_or_default();
        for pattern in &namespaces {
            let can_be_one = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-*".contains(&b);
            if pattern.value.is_empty() || pattern.value.len() > LABEL || !pattern.value.bytes().all(can_be_one) {
                let problem = "must name namespaces, of a-z, 0-9 and `-`; `*` stands for any text";
                return Err(self.invalid(pattern.line, "namespaces", problem));
            }
        }
        Ok(Allow {
            namespaces: values(namespaces),
            users: self.names("users", file.users.unwrap_or_default())?,
            groups: self.names("groups", file.groups.unwrap_or_default())?,
        })
    }

    /// A name of a user or group can be almost anything, but a star in it is one that was meant to stand for others.
    fn names(&self, key: &str, names: Vec<Given<String>>) -> Checked<Vec<String>> {
        for name in &names {
            if name.value.is_empty() || name.value.contains('*') || name.value.contains(char::is_control) {
                let problem = "must name each in full; leave `users` and `groups` empty to allow everybody";
                return Err(self.invalid(name.line, key, problem));
            }
        }
        Ok(values(names))
    }

    pub(super) fn trusted(&self, names: Vec<Given<String>>) -> Checked<Vec<String>> {
        for name in &names {
            let is_outside = |c: char| c.is_whitespace() || c.is_control() || ",*".contains(c);
            if name.value.is_empty() || name.value.contains(is_outside) {
                let problem = "must name each user in full, such as system:serviceaccount:<namespace>:<name>; no \
                               spaces, no `,`, no `*`";
                return Err(self.invalid(name.line, "trusted", problem));
            }
        }
        Ok(values(names))
    }
}
