use tempfile::TempDir;

use super::*;

/// A part of one program, `prog`, and a `go` that is a shell script.
struct Fake {
    _folder: TempDir,
    workshop: Workshop,
}

const TOY: Part = Part { name: "toy", module: "example.com/toy", packages: ".", ldflags: "-X v={version}", ..PART };

impl Fake {
    /// `script` sees what `go` was called with; each call's arguments are noted.
    fn new(script: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let module = folder.path().join("module");
        fs::create_dir(&module).unwrap();
        fs::write(module.join("go.mod"), "module toy\n\nrequire example.com/toy v1.2.3\n").unwrap();
        fs::write(module.join("go.sum"), "").unwrap();
        fs::write(module.join("main.go"), "package main").unwrap();
        // Not executed itself: a file that was just written may be held open by another thread's fork, and is "busy" then.
        fs::write(module.join("go.sh"), format!("echo \"$@\" >> calls\n{script}\n")).unwrap();
        let go = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/parts/tests/go");
        let workshop = Workshop { folder: module, cache: folder.path().join("cache"), go: Some(go) };
        Self { _folder: folder, workshop }
    }

    fn ensure(&self, part: &Part) -> Result<PathBuf, PartsError> {
        ensure_in(part, &self.workshop, &Progress::silent())
    }

    fn calls(&self, verb: &str) -> Vec<String> {
        let calls = fs::read_to_string(self.workshop.folder.join("calls")).unwrap_or_default();
        calls.lines().filter(|line| line.starts_with(verb)).map(str::to_owned).collect()
    }
}

/// A `go` that does what is wanted: writes `prog` into the folder after `-o`.
const GOOD: &str = r#"
case $1 in
version) echo "go version go1.26.8 linux/amd64" ;;
list) echo runtime; echo toy ;;
build) while [ "$1" != -o ]; do shift; done; echo program > "$2/prog" ;;
esac"#;

#[test]
fn a_part_is_built_once_and_then_no_go_is_called_at_all() {
    let mut fake = Fake::new(GOOD);
    let folder = fake.ensure(&TOY).unwrap();
    assert_eq!(fs::read_to_string(folder.join("prog")).unwrap(), "program\n");
    assert_eq!(fake.calls("build").len(), 1);
    let build = &fake.calls("build")[0];
    assert!(build.contains("-trimpath") && build.contains("-ldflags=-s -w -X v=1.2.3"), "{build}");
    fake.workshop.go = None;
    assert_eq!(fake.ensure(&TOY).unwrap(), folder);
}

#[test]
fn what_is_not_built_yet_is_named_before_the_first_of_it_with_the_time_of_all() {
    let [one, other] = [Fake::new(GOOD), Fake::new(GOOD)];
    let wanted = [(&TOY, &one.workshop), (&TOY, &other.workshop)];
    assert_eq!(plan(&wanted).unwrap().unwrap(), "To be built first: toy 1.2.3, toy 1.2.3; about 2 min in all.");
    one.ensure(&TOY).unwrap();
    assert_eq!(plan(&wanted).unwrap(), None, "one says how long it takes by itself");
}

#[test]
fn a_part_is_built_again_when_anything_that_goes_in_changes() {
    let fake = Fake::new(GOOD);
    let mut folders = vec![fake.ensure(&TOY).unwrap()];
    folders.push(fake.ensure(&Part { tags: "other", ..TOY }).unwrap());
    folders.push(fake.ensure(&Part { ldflags: "other", ..TOY }).unwrap());
    folders.push(fake.ensure(&Part { links: &["other"], ..TOY }).unwrap());
    for file in ["main.go", "go.sum", "added.go"] {
        fs::write(fake.workshop.folder.join(file), "changed").unwrap();
        folders.push(fake.ensure(&TOY).unwrap());
    }
    let mut module = fs::read_to_string(fake.workshop.folder.join("go.mod")).unwrap();
    module.push_str("// changed\n");
    fs::write(fake.workshop.folder.join("go.mod"), module).unwrap();
    folders.push(fake.ensure(&TOY).unwrap());
    let distinct: std::collections::HashSet<_> = folders.iter().collect();
    assert_eq!(distinct.len(), folders.len());
}

#[test]
fn an_older_version_is_built_with_its_own_file_and_does_not_touch_the_newest_ones_key() {
    let fake = Fake::new(GOOD);
    let newest = fake.ensure(&TOY).unwrap();
    fs::write(fake.workshop.folder.join("v1.1.mod"), "require example.com/toy v1.1.9").unwrap();
    fs::write(fake.workshop.folder.join("v1.1.sum"), "").unwrap();
    assert_eq!(fake.ensure(&TOY).unwrap(), newest);
    let older = Part { modfile: "v1.1.mod", ..TOY };
    assert_ne!(fake.ensure(&older).unwrap(), newest);
    let build = fake.calls("build").pop().unwrap();
    assert!(build.contains("-modfile=v1.1.mod") && build.contains("v=1.1.9"), "{build}");
}

#[test]
fn the_further_names_of_a_program_lead_to_it() {
    let fake = Fake::new(GOOD);
    let folder = fake.ensure(&Part { links: &["one", "two"], ..TOY }).unwrap();
    for name in ["prog", "one", "two"] {
        assert_eq!(fs::read_to_string(folder.join(name)).unwrap(), "program\n");
    }
}

#[test]
fn a_failed_build_shows_the_end_of_what_go_said_and_where_all_of_it_is() {
    let fake = Fake::new(
        r#"case $1 in
        version) echo "go version go1.26.8 linux/amd64" ;;
        build) for n in $(seq 30); do echo "line $n" >&2; done; exit 1 ;;
        esac"#,
    );
    let Err(PartsError::Go { part, log, tail }) = fake.ensure(&TOY) else { panic!("was built") };
    assert_eq!(part, "toy 1.2.3");
    assert!(tail.starts_with("line 11\n") && tail.ends_with("line 30"), "{tail}");
    assert!(fs::read_to_string(log).unwrap().starts_with("line 1\n"));
    assert_eq!(fake.calls("build").len(), 1);
}

#[test]
fn a_network_that_fails_once_is_asked_again() {
    let fake = Fake::new(
        r#"case $1 in
        version) echo "go version go1.26.8 linux/amd64" ;;
        list) [ -e again ] || { touch again; echo 'Get "https://proxy.example/x": dial tcp: i/o timeout' >&2; exit 1; } ;;
        esac"#,
    );
    fake.ensure(&TOY).unwrap();
    assert_eq!(fake.calls("list").len(), 2);
}

#[test]
fn a_module_that_does_not_exist_is_asked_for_once() {
    let fake = Fake::new(
        r#"case $1 in
        version) echo "go version go1.26.8 linux/amd64" ;;
        list) echo 'reading https://proxy.example/x.zip: 404 Not Found' >&2; exit 1 ;;
        esac"#,
    );
    assert!(matches!(fake.ensure(&TOY), Err(PartsError::Go { .. })));
    assert_eq!(fake.calls("list").len(), 1);
}

#[test]
fn the_folder_of_a_module_is_the_one_that_go_names() {
    let fake = Fake::new(
        r#"case "$1 $2" in
        version*) echo "go version go1.26.8 linux/amd64" ;;
        "mod download") echo '{"Path": "example.com/toy", "Dir": "/modules/toy@v1.2.3"}' ;;
        esac"#,
    );
    let folder = build::module_folder(&TOY, "toy 1.2.3", &fake.workshop, &Progress::silent()).unwrap();
    assert_eq!(folder, Path::new("/modules/toy@v1.2.3"));
    assert_eq!(fake.calls("mod"), ["mod download -json -modfile=go.mod example.com/toy"]);
}

#[test]
fn without_go_and_with_one_too_old_the_error_says_which_to_install() {
    let mut fake = Fake::new(r#"echo "go version go1.19.8 linux/amd64""#);
    let old = fake.ensure(&TOY).unwrap_err();
    assert_eq!(
        old.to_string(),
        "go1.19.8 is too old; install Go 1.21 or later, it fetches the one that go.mod asks for"
    );
    fake.workshop.go = None;
    let none = fake.ensure(&TOY).unwrap_err();
    assert_eq!(none.to_string(), "building toy 1.2.3 takes Go, and there is none on PATH; install Go 1.21 or later");
}

#[test]
fn a_version_is_read_from_either_form_of_require() {
    let text = "module m\n\nrequire example.com/a v1.0.1\n\nrequire (\n\texample.com/b v2.0.2 // indirect\n)\n";
    assert_eq!(required_version(text, "example.com/a").unwrap(), "1.0.1");
    assert_eq!(required_version(text, "example.com/b").unwrap(), "2.0.2");
    assert_eq!(required_version(text, "example.com/c"), None);
}

#[test]
fn every_part_has_its_module_and_pins_its_version() {
    let mut parts = ALL.to_vec();
    for version in kubernetes_versions().unwrap() {
        let part = kubernetes(&version).unwrap();
        assert_eq!(minor_of(&part.version().unwrap()), version);
        parts.push(part);
    }
    for part in parts {
        part.version().unwrap();
        part.key(&part.folder()).unwrap();
    }
}

#[test]
fn the_oldest_and_the_newest_kubernetes_are_there_and_another_is_refused_by_naming_them() {
    let versions = kubernetes_versions().unwrap();
    assert_eq!(versions.first().unwrap(), "1.34");
    assert_eq!(kubernetes("1.34").unwrap().sumfile(), "v1.34.sum");
    assert_eq!(versions.last().unwrap(), minor_of(&KUBERNETES.version().unwrap()));
    let error = kubernetes("1.3").unwrap_err();
    assert_eq!(error.to_string(), format!("no Kubernetes 1.3 here; there is {}", versions.join(", ")));
}

#[test]
fn no_two_parts_bring_a_program_of_the_same_name() {
    let mut names: Vec<&str> = ALL.iter().flat_map(|part| [&[part.name], part.links].concat()).collect();
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all);
}

#[test]
fn the_newest_kubernetes_is_the_one_that_is_pinned() {
    assert_eq!(minor_of(&KUBERNETES.version().unwrap()), NEWEST);
}
