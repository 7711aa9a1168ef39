//! Credentials for a registry, from a file as a `kubernetes.io/dockerconfigjson` Secret holds it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::HeaderValue;
use serde::Deserialize;

/// What clients of Docker Hub call it in such files.
const DOCKER_HUB: [&str; 2] = ["index.docker.io", "registry-1.docker.io"];

/// Why there are no credentials. Nothing of the file is in it.
#[derive(Debug, thiserror::Error)]
pub enum CredentialsError {
    /// The file cannot be read.
    #[error("cannot read the registry's credentials in {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system answered.
        source: io::Error,
    },
    /// The file is something else.
    #[error("{} is not what a kubernetes.io/dockerconfigjson Secret holds: {{\"auths\": {{HOST: {{\"auth\": …}}}}}}", .0.display())]
    Format(PathBuf),
    /// The file is for others.
    #[error("{} has no user and password for {host}", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
        /// The registry.
        host: String,
    },
}

#[derive(Deserialize)]
struct File {
    auths: BTreeMap<String, Entry>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Entry {
    /// `user:password` in base64.
    auth: String,
    username: String,
    password: String,
}

/// The `Authorization` by which `host` knows the user that the file at `path` has for it.
pub(super) fn read(path: &Path, host: &str) -> Result<HeaderValue, CredentialsError> {
    let text = fs::read(path).map_err(|source| CredentialsError::Unreadable { path: path.to_owned(), source })?;
    let format = || CredentialsError::Format(path.to_owned());
    let file: File = serde_json::from_slice(&text).map_err(|_| format())?;
    let entry = file.auths.into_iter().find(|(key, _)| is_for(key, host)).map(|(_, entry)| entry);
    let user = match entry {
        Some(Entry { auth, .. }) if !auth.is_empty() => STANDARD.decode(auth).map_err(|_| format())?,
        Some(Entry { username, password, .. }) if !username.is_empty() => format!("{username}:{password}").into_bytes(),
        _ => return Err(CredentialsError::Missing { path: path.to_owned(), host: host.to_owned() }),
    };
    let mut header = HeaderValue::try_from(format!("Basic {}", STANDARD.encode(user))).map_err(|_| format())?;
    header.set_sensitive(true);
    Ok(header)
}

/// Whether an entry is for this host: some write it as a URL, with the version of the API.
fn is_for(key: &str, host: &str) -> bool {
    let key = key.split_once("://").map_or(key, |(_, rest)| rest);
    let key = key.split('/').next().unwrap_or_default();
    key == host || (DOCKER_HUB.contains(&key) && host == "docker.io")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn written(text: &str) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), text).unwrap();
        file
    }

    fn of(file: &str, host: &str) -> Result<HeaderValue, CredentialsError> {
        read(written(file).path(), host)
    }

    #[test]
    fn the_entry_of_the_host_is_found_however_it_is_written() {
        let header = format!("Basic {}", STANDARD.encode("user:pa:ss"));
        for (key, host) in [
            ("r.example", "r.example"),
            ("r.example:5000", "r.example:5000"),
            ("https://r.example", "r.example"),
            ("https://r.example/v2/", "r.example"),
            ("https://index.docker.io/v1/", "docker.io"),
            ("docker.io", "docker.io"),
        ] {
            for entry in
                [json!({"auth": STANDARD.encode("user:pa:ss")}), json!({"username": "user", "password": "pa:ss"})]
            {
                let found = of(&json!({"auths": {"other.example": {}, key: entry}}).to_string(), host).unwrap();
                assert_eq!(found, header.as_str());
                assert!(found.is_sensitive());
            }
        }
    }

    #[test]
    fn what_is_not_there_or_not_readable_is_told_without_a_secret() {
        let entry = |auth: &str| json!({"auths": {"r.example": {"auth": auth}}}).to_string();
        for (file, host) in [
            (entry("c2VjcmV0OnNlY3JldA=="), "r.example:5000"),
            (entry("c2VjcmV0OnNlY3JldA=="), "evil.r.example"),
            (entry(""), "r.example"),
            (entry("c2VjcmV0!"), "r.example"),
            ("{\"c2VjcmV0\": 1}".to_owned(), "r.example"),
            ("c2VjcmV0".to_owned(), "r.example"),
        ] {
            let error = of(&file, host).unwrap_err();
            assert!(!format!("{error} {error:?}").contains("c2VjcmV0"), "{error}");
        }
        let error = read(Path::new("/nowhere/config.json"), "r.example").unwrap_err();
        assert!(matches!(error, CredentialsError::Unreadable { .. }));
    }
}
