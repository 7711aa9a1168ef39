//! Programs of others that read an `OpenAPI` document: one judges it, and one sends a service what it allows and what it
//! does not.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use cofferdam_cluster::progress::Progress;
use cofferdam_cluster::wheels;

/// What pins them.
const REQUIREMENTS: &str = include_str!("../../cluster/parts/schemathesis/requirements.txt");

/// Whether the document is one.
///
/// # Errors
/// What is wrong with it.
pub fn validate(document: &Path) -> Result<()> {
    let program = "import sys; from openapi_spec_validator.__main__ import main; sys.exit(main(sys.argv[1:]))";
    python(program, &[&document.to_string_lossy()]).map(drop)
}

/// Sends the service at `url` requests that the document allows, and such that it does not, `examples` for each operation,
/// and holds its answers against the document. Returns what was found to be right.
///
/// # Errors
/// What the service answered otherwise, with the request.
pub fn fuzz(document: &Path, url: &str, token: &str, examples: u32) -> Result<String> {
    let program = "import sys; from schemathesis.cli import schemathesis; sys.exit(schemathesis())";
    let (header, examples) = (format!("Authorization: Bearer {token}"), format!("--max-examples={examples}"));
    let document = document.to_string_lossy();
    let asked = ["run", &document, "--url", url, "--header", &header, &examples, "--continue-on-failure"];
    // A seed of its own, so that what failed once fails again.
    let how = ["--seed=4711", "--no-color", "--request-timeout=20", "--checks=all"];
    // What fits the document may still be refused, for what no schema can say; scalars of another type are taken for what
    // they stand for; and what there is no route for is not found, by whatever method: clients of the contract know both.
    let but = ["--exclude-checks=positive_data_acceptance,negative_data_rejection,unsupported_method"];
    python(program, &[&asked[..], &how, &but].concat())
}

fn python(program: &str, arguments: &[&str]) -> Result<String> {
    let folder = wheels::folder("schemathesis", REQUIREMENTS, &Progress::new())?;
    let mut python = Command::new("python3");
    // What they remember of a run is thrown away with it.
    let here = tempfile::tempdir()?;
    python.args(["-c", program]).args(arguments).env("PYTHONPATH", folder).current_dir(here.path());
    let output = python.output().context("there is no python3")?;
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    ensure!(output.status.success(), "{said}");
    Ok(said)
}
