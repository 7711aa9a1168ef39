//! For tests: an authority that issues certificates, and a volume that changes the way a kubelet's does.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, date_time_ymd};
use rustls::pki_types::CertificateDer;
use tempfile::TempDir;

use crate::files::{Contents, Files};

/// A certificate authority.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// A certificate with its key, as PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct Issued {
    /// What a TLS Secret calls `tls.crt`.
    pub chain: String,
    /// What a TLS Secret calls `tls.key`.
    pub key: String,
}

impl Authority {
    /// A new authority with a key of its own.
    pub fn new() -> io::Result<Self> {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().map_err(io::Error::other)?;
        Ok(Self { issuer: CertifiedIssuer::self_signed(params, key).map_err(io::Error::other)? })
    }

    /// What clients have to trust.
    #[must_use]
    pub fn root(&self) -> CertificateDer<'static> {
        self.issuer.der().clone()
    }

    /// A certificate for `name` that is valid for an hour.
    pub fn issue(&self, name: &str) -> io::Result<Issued> {
        let now = SystemTime::now();
        self.issue_for(name, now, now + Duration::from_hours(1))
    }

    /// A certificate for `name` that is valid between the two times, to the second.
    pub fn issue_for(&self, name: &str, from: SystemTime, until: SystemTime) -> io::Result<Issued> {
        let mut params = CertificateParams::new([name.to_owned()]).map_err(io::Error::other)?;
        params.not_before = date_time_ymd(1970, 1, 1) + since_1970(from);
        params.not_after = date_time_ymd(1970, 1, 1) + since_1970(until);
        let key = KeyPair::generate().map_err(io::Error::other)?;
        let certificate = params.signed_by(&key, &self.issuer).map_err(io::Error::other)?;
        Ok(Issued { chain: certificate.pem(), key: key.serialize_pem() })
    }
}

impl Issued {
    /// The same as read from files.
    #[must_use]
    pub fn contents(&self) -> Contents {
        Contents { chain: self.chain.clone().into_bytes(), key: self.key.clone().into_bytes() }
    }
}

fn since_1970(time: SystemTime) -> Duration {
    Duration::from_secs(time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()))
}

/// A mounted ConfigMap or Secret. What a program opens is a link into `..data`, which is a link to the directory of the
/// current generation; an update makes a new directory and renames a new `..data` over the old one.
pub struct Volume {
    root: TempDir,
    generation: u64,
}

impl Volume {
    /// Mounts an object that holds these files, by name and contents.
    pub fn mount(files: &[(&str, &str)]) -> io::Result<Self> {
        let mut volume = Self { root: tempfile::tempdir()?, generation: 0 };
        volume.update(files)?;
        for (name, _) in files {
            symlink(PathBuf::from("..data").join(name), volume.path(name))?;
        }
        Ok(volume)
    }

    /// Brings the volume to a new state of the object, in one step.
    pub fn update(&mut self, files: &[(&str, &str)]) -> io::Result<()> {
        let root = self.root.path();
        let old = root.join(format!("..generation-{}", self.generation));
        self.generation += 1;
        let new = format!("..generation-{}", self.generation);
        fs::create_dir(root.join(&new))?;
        for (name, contents) in files {
            fs::write(root.join(&new).join(name), contents)?;
        }
        symlink(&new, root.join("..data_tmp"))?;
        fs::rename(root.join("..data_tmp"), root.join("..data"))?;
        if old.exists() {
            fs::remove_dir_all(old)?;
        }
        Ok(())
    }

    /// Where a program finds a file.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }
}

/// A mounted TLS Secret.
pub struct SecretVolume(Volume);

impl SecretVolume {
    /// Mounts a Secret.
    pub fn mount(issued: &Issued) -> io::Result<Self> {
        Volume::mount(&pair(issued)).map(Self)
    }

    /// Brings the volume to a new state of the Secret, in one step.
    pub fn update(&mut self, issued: &Issued) -> io::Result<()> {
        self.0.update(&pair(issued))
    }

    /// Where a program finds the two files.
    #[must_use]
    pub fn files(&self) -> Files {
        Files { chain: self.0.path("tls.crt"), key: self.0.path("tls.key") }
    }
}

fn pair(issued: &Issued) -> [(&'static str, &str); 2] {
    [("tls.crt", &issued.chain), ("tls.key", &issued.key)]
}
