//! Manifests that lie in a Go module, taken from it once.

use std::fs;
use std::path::{Path, PathBuf};

use super::{AddonError, Workbench};
use crate::cache::{self, CacheError, Key};
use crate::parts::{self, Part};

/// Files of a module, one after the other, with what has to be otherwise here.
#[derive(Debug)]
pub(super) struct Manifests {
    /// The part whose Go module holds them.
    pub(super) part: Part,
    /// Files, and folders of which every manifest is meant, in the order of their names.
    pub(super) paths: &'static [&'static str],
    /// What stands there and what takes its place, everywhere; `{version}` stands for the part's.
    pub(super) edits: &'static [(&'static str, &'static str)],
}

impl Manifests {
    /// The manifests, as one YAML text.
    pub(super) fn read(&self, workbench: &Workbench) -> Result<String, AddonError> {
        let version = self.part.version()?;
        let mut key = Key::new().text(self.part.name()).text(&version);
        for word in self.paths.iter().chain(self.edits.iter().flat_map(|(from, to)| [from, to])) {
            key = key.text(word);
        }
        let entry = cache::entry("manifests", &key.finish(), |out| -> Result<(), AddonError> {
            let module = parts::module_folder(&self.part, workbench.progress)?;
            let text = edited(&joined(&module, self.paths)?, self.edits, &version)?;
            let file = out.join("manifests.yaml");
            Ok(fs::write(&file, text).map_err(CacheError::io("write", &file))?)
        })?;
        let file = entry.join("manifests.yaml");
        Ok(fs::read_to_string(&file).map_err(CacheError::io("read", &file))?)
    }
}

/// The documents of all `paths` below `module`.
fn joined(module: &Path, paths: &[&str]) -> Result<String, CacheError> {
    let mut text = String::new();
    for path in paths {
        for file in files(&module.join(path))? {
            text += &fs::read_to_string(&file).map_err(CacheError::io("read", &file))?;
            // The last line may lack its end.
            text += "\n---\n";
        }
    }
    Ok(text)
}

/// The file that `path` is, or the manifests in the folder that it is.
fn files(path: &Path) -> Result<Vec<PathBuf>, CacheError> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    for file in fs::read_dir(path).map_err(CacheError::io("read", path))? {
        let file = file.map_err(CacheError::io("read", path))?.path();
        let manifest = file.extension().is_some_and(|extension| extension == "yaml");
        // That one says which of the others a kustomization has.
        if manifest && file.file_name().is_some_and(|name| name != "kustomization.yaml") {
            files.push(file);
        }
    }
    files.sort();
    Ok(files)
}

/// `text` with every edit made. One that finds nothing is an error: a newer version says it in other words.
fn edited(text: &str, edits: &[(&str, &str)], version: &str) -> Result<String, AddonError> {
    edits.iter().try_fold(text.to_owned(), |text, (from, to)| {
        let [from, to] = [from, to].map(|words| words.replace("{version}", version));
        if !text.contains(&from) {
            return Err(AddonError::Edit { words: from });
        }
        Ok(text.replace(&from, &to))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_gives_its_manifests_by_name_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in [("b.yaml", "b: 1"), ("a.yaml", "a: 1\n"), ("kustomization.yaml", "k: 1"), ("README", "r")]
        {
            fs::write(folder.path().join(name), text).unwrap();
        }
        assert_eq!(joined(folder.path(), &["b.yaml", ""]).unwrap(), "b: 1\n---\na: 1\n\n---\nb: 1\n---\n");
    }

    #[test]
    fn an_edit_is_made_everywhere_and_one_that_finds_nothing_is_an_error() {
        let text = "image: some:v1.2.3\nimage: some:v1.2.3\n";
        let edit = [("some:v{version}", "other:{version}")];
        assert_eq!(edited(text, &edit, "1.2.3").unwrap(), "image: other:1.2.3\nimage: other:1.2.3\n");
        let error = edited(text, &edit, "1.2.4").unwrap_err().to_string();
        assert!(error.contains("some:v1.2.4"), "{error}");
    }
}
