//! The program, as a kubelet runs it.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

use crate::archive::Tar;
use crate::server::{Answer, Server, sha256};

/// A pod's volume and the files beside it.
#[derive(Debug)]
pub(crate) struct Pod {
    folder: TempDir,
}

/// How a run ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: i32,
    /// The termination message.
    pub(crate) reason: String,
    pub(crate) log: String,
}

impl Pod {
    pub(crate) fn new() -> Self {
        let pod = Self { folder: tempfile::tempdir().unwrap() };
        fs::create_dir(pod.app()).unwrap();
        pod
    }

    pub(crate) fn app(&self) -> PathBuf {
        self.folder.path().join("app")
    }

    /// A file beside the volume.
    pub(crate) fn file(&self, name: &str, text: &str) -> String {
        let path = self.folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    /// Runs the program with `url` and the right digest of `archive`.
    pub(crate) fn fetch(&self, url: &str, archive: &[u8]) -> Ended {
        self.fetch_with(url, archive, &[])
    }

    pub(crate) fn fetch_with(&self, url: &str, archive: &[u8], more: &[&str]) -> Ended {
        let (url, digest) = (format!("--url={url}"), format!("--sha256={}", sha256(archive)));
        let into = format!("--into={}", self.app().display());
        let mut arguments = vec![url.as_str(), &digest, &into];
        // Long enough for any machine, but for the tests that wait for its end.
        if !more.iter().any(|flag| flag.starts_with("--deadline")) {
            arguments.push("--deadline=90s");
        }
        arguments.extend(more);
        self.run(&arguments)
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Ended {
        let message = self.file("termination-log", "");
        let message_flag = OsString::from(format!("--termination-log={message}"));
        let output: Output = Command::new(env!("CARGO_BIN_EXE_cofferdam-fetch"))
            .args(arguments)
            .arg(message_flag)
            .env_clear()
            .output()
            .unwrap();
        assert_eq!(output.stdout, b"", "all that is said is log");
        let reason = fs::read_to_string(message).unwrap();
        assert!(reason.chars().count() <= 500 && !reason.contains('\n'), "{reason}");
        let log = String::from_utf8(output.stderr).unwrap();
        assert!(log.contains(&reason), "{log}");
        Ended { code: output.status.code().unwrap(), reason, log }
    }

    /// Names in the volume, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        names(&self.app())
    }

    pub(crate) fn text(&self, name: &str) -> String {
        fs::read_to_string(self.app().join(name)).unwrap()
    }
}

impl Ended {
    /// It did what it should.
    #[track_caller]
    pub(crate) fn well(&self) {
        assert_eq!((self.code, self.reason.as_str()), (0, ""), "{}", self.log);
    }

    /// It failed with this code, for a reason that says this.
    #[track_caller]
    pub(crate) fn failed(&self, code: i32, why: &str) {
        assert_eq!(self.code, code, "{}", self.log);
        assert!(self.reason.contains(why), "{}", self.reason);
    }
}

pub(crate) fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// The names in a volume with the body.
pub(crate) const PLACED: [&str; 3] = [".cofferdam-complete", "data", "main.py"];

/// A body that is large enough to break off in.
pub(crate) fn body() -> Vec<u8> {
    Tar::new().file("main.py", "print()").file("data/noise", &noise(1)).gzip()
}

/// Text that no compression makes small, the same for the same seed.
pub(crate) fn noise(seed: u64) -> String {
    let mut random = fastrand::Rng::with_seed(seed);
    (0..40_000).map(|_| random.lowercase()).collect()
}

/// A body, and a server that has it.
pub(crate) fn served() -> (Vec<u8>, Server) {
    let body = body();
    let server = Server::start(vec![Answer::whole(&body)]);
    (body, server)
}
