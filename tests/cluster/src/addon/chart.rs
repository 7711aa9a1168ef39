//! A Helm chart that lies in a Go module, rendered once.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{AddonError, Workbench};
use crate::cache::{self, CacheError, Key};
use crate::parts::{self, HELM, Part};

/// A chart and what it is told.
#[derive(Debug)]
pub(super) struct Chart<'a> {
    /// The release's name.
    pub(super) name: &'static str,
    /// The part whose Go module holds the chart, and whose version is the chart's.
    pub(super) part: Part,
    /// Where in the module.
    pub(super) folder: &'static str,
    /// Into which namespace.
    pub(super) namespace: &'static str,
    /// A file of values.
    pub(super) values: &'a str,
}

impl Chart<'_> {
    /// The manifests, as one YAML text.
    pub(super) fn render(&self, workbench: &Workbench) -> Result<String, AddonError> {
        let key = Key::new()
            .text(self.name)
            .text(&self.part.version()?)
            .text(self.folder)
            .text(self.namespace)
            .text(self.values)
            .text(workbench.kubernetes)
            .text(&HELM.version()?);
        let entry = cache::entry("charts", &key.finish(), |out| self.render_into(out, workbench))?;
        let manifests = entry.join("manifests.yaml");
        Ok(fs::read_to_string(&manifests).map_err(cannot("read", &manifests))?)
    }

    fn render_into(&self, out: &Path, workbench: &Workbench) -> Result<(), AddonError> {
        let helm = workbench.part(&HELM)?.join("helm");
        let source = parts::module_folder(&self.part, workbench.progress)?.join(self.folder);
        let temporary = tempfile::tempdir().map_err(cannot("create a folder in", &std::env::temp_dir()))?;
        let chart = temporary.path().join("chart");
        copy(&source, &chart)?;
        // What its release scripts would fill in there is among our values.
        let unfilled = chart.join("values.tmpl.yaml");
        if unfilled.exists() {
            fs::rename(&unfilled, chart.join("values.yaml")).map_err(cannot("rename", &unfilled))?;
        }
        let description = chart.join("Chart.yaml");
        let text = fs::read_to_string(&description).map_err(cannot("read", &description))?;
        fs::write(&description, stamp(&text, &self.part.version()?)).map_err(cannot("write", &description))?;
        let values = temporary.path().join("values.yaml");
        fs::write(&values, self.values).map_err(cannot("write", &values))?;
        let fail = |output: String| AddonError::Chart { chart: self.name, output };
        let output = Command::new(helm)
            .args(["template", self.name])
            .arg(&chart)
            .args(["--namespace", self.namespace])
            // Helm knows no cluster here, and would take it for one of years ago.
            .args(["--kube-version", workbench.kubernetes])
            .arg("--values")
            .arg(&values)
            // Its own files, which a template needs none of, stay out of the user's home.
            .env("HELM_CACHE_HOME", temporary.path())
            .env("HELM_CONFIG_HOME", temporary.path())
            .env("HELM_DATA_HOME", temporary.path())
            .output()
            .map_err(|error| fail(error.to_string()))?;
        if !output.status.success() {
            return Err(fail(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
        }
        let manifests = out.join("manifests.yaml");
        Ok(fs::write(&manifests, output.stdout).map_err(cannot("write", &manifests))?)
    }
}

/// A module's chart has the version of no release; only release scripts put it in.
fn stamp(chart: &str, version: &str) -> String {
    let line = |line: &str| match line.split_once(':') {
        Some((key @ ("version" | "appVersion"), _)) => format!("{key}: v{version}\n"),
        _ => format!("{line}\n"),
    };
    chart.lines().map(line).collect()
}

/// Copies a folder, without the modes: Go makes all of a module read-only.
fn copy(from: &Path, to: &Path) -> Result<(), AddonError> {
    fs::create_dir(to).map_err(cannot("create", to))?;
    for entry in fs::read_dir(from).map_err(cannot("read", from))? {
        let entry = entry.map_err(cannot("read", from))?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        if source.is_dir() {
            copy(&source, &target)?;
        } else {
            let contents = fs::read(&source).map_err(cannot("read", &source))?;
            fs::write(&target, contents).map_err(cannot("write", &target))?;
        }
    }
    Ok(())
}

fn cannot(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> CacheError {
    let path = PathBuf::from(path);
    move |source| CacheError::Io { action, path, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chart_gets_the_version_of_its_module_and_keeps_everything_else() {
        let chart = "apiVersion: v2\nname: some\nversion: v0.0.0\nappVersion: v0.0.0\nkubeVersion: \">= 1.22\"\n";
        let stamped = "apiVersion: v2\nname: some\nversion: v1.2.3\nappVersion: v1.2.3\nkubeVersion: \">= 1.22\"\n";
        assert_eq!(stamp(chart, "1.2.3"), stamped);
    }

    #[test]
    fn a_read_only_folder_is_copied_with_all_below_it_and_can_be_written_to() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        fs::create_dir_all(from.join("below")).unwrap();
        let file = from.join("below/file");
        fs::write(&file, "contents").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o444)).unwrap();
        copy(&from, &to).unwrap();
        let copied = to.join("below/file");
        assert_eq!(fs::read_to_string(&copied).unwrap(), "contents");
        assert_eq!(fs::metadata(&copied).unwrap().permissions().mode() & 0o200, 0o200);
    }
}
