use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::symlink;

use tempfile::{TempDir, tempdir};

use super::*;

/// A context with a Containerfile of this text beside it.
struct Fixture {
    folder: TempDir,
    reference: Reference,
}

impl Fixture {
    fn new(text: &str) -> Self {
        let folder = tempdir().unwrap();
        fs::create_dir_all(folder.path().join("context/bin")).unwrap();
        for name in ["bin/one", "bin/two", "note"] {
            fs::write(folder.path().join("context").join(name), name).unwrap();
        }
        fs::write(folder.path().join("Containerfile"), text).unwrap();
        Self { folder, reference: "image:1".parse().unwrap() }
    }

    fn build(&self) -> Result<Image, ContainerfileError> {
        Containerfile::read(&self.folder.path().join("Containerfile"))?
            .image(self.reference.clone(), &self.folder.path().join("context"))
    }

    /// Path and mode of everything in the image's one layer.
    fn layer(&self) -> Vec<(String, u32)> {
        let path = self.folder.path().join("image.tar");
        self.build().unwrap().write(&path).unwrap();
        let mut image = tar::Archive::new(File::open(path).unwrap());
        // The blobs follow the two index files, the layer first.
        let mut layer = Vec::new();
        image.entries().unwrap().nth(2).unwrap().unwrap().read_to_end(&mut layer).unwrap();
        tar::Archive::new(layer.as_slice())
            .entries()
            .unwrap()
            .map(|entry| {
                let entry = entry.unwrap();
                let path = String::from_utf8(entry.path_bytes().into_owned()).unwrap();
                (path, entry.header().mode().unwrap())
            })
            .collect()
    }
}

fn names(layer: &[(String, u32)]) -> Vec<&str> {
    layer.iter().map(|(name, _)| name.as_str()).collect()
}

/// The error that this text gives, without the path in front.
fn refusal(text: &str) -> String {
    let error = Fixture::new(text).build().map(|_| ()).unwrap_err().to_string();
    error.split_once("/Containerfile:").unwrap().1.to_owned()
}

#[test]
fn every_instruction_reaches_the_configuration() {
    let image = Fixture::new(
        r#"
# What it starts from.
FROM scratch
USER 65532:65532
ENV A=1 B="two words" \
    # a comment does not end the instruction
    C='$3'
ENV A=one PATH=/bin
LABEL org.example.title=Title "org.example.text"="a \"quoted\" \$5"
EXPOSE 8443 53/udp
WORKDIR /srv
workdir data
ENTRYPOINT ["/bin/one", "--flag"]
CMD ["a b"]
"#,
    )
    .build()
    .unwrap();
    assert_eq!(
        image.config,
        Config {
            user: "65532:65532".into(),
            exposed_ports: BTreeSet::from(["8443/tcp".into(), "53/udp".into()]),
            env: vec!["PATH=/bin".into(), "A=one".into(), "B=two words".into(), "C=$3".into()],
            entrypoint: vec!["/bin/one".into(), "--flag".into()],
            cmd: vec!["a b".into()],
            working_dir: "/srv/data".into(),
            labels: BTreeMap::from([
                ("org.example.title".into(), "Title".into()),
                ("org.example.text".into(), "a \"quoted\" $5".into()),
            ]),
        }
    );
}

#[test]
fn an_image_without_a_path_gets_the_usual_one() {
    let image = Fixture::new("FROM scratch").build().unwrap();
    assert_eq!(image.config.env, ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]);
}

#[test]
fn copy_takes_a_directory_for_what_lies_in_it() {
    let fixture = Fixture::new("FROM scratch\nCOPY --chmod=0555 bin /usr/bin\nCOPY . /all/");
    let layer = fixture.layer();
    assert_eq!(
        names(&layer),
        [
            "all/",
            "all/bin/",
            "all/bin/one",
            "all/bin/two",
            "all/note",
            "usr/",
            "usr/bin/",
            "usr/bin/one",
            "usr/bin/two"
        ]
    );
    assert_eq!(layer[7].1, 0o555);
}

#[test]
fn copy_puts_a_file_into_a_directory_or_in_its_place() {
    let fixture = Fixture::new(
        "FROM scratch\nWORKDIR /srv\nCOPY --chmod=755 bin/one /usr/bin/\nCOPY note readme\nCOPY /note /srv\nCOPY bin/one bin/two b/",
    );
    assert_eq!(
        names(&fixture.layer()),
        ["srv/", "srv/b/", "srv/b/one", "srv/b/two", "srv/note", "srv/readme", "usr/", "usr/bin/", "usr/bin/one"]
    );
}

#[test]
fn copy_does_not_leave_the_context() {
    let fixture = Fixture::new("FROM scratch\nCOPY out /out");
    symlink("/etc/hostname", fixture.folder.path().join("context/out")).unwrap();
    assert!(fixture.build().unwrap_err().to_string().ends_with(":2: cannot copy out: it lies outside the context"));
    assert!(refusal("FROM scratch\nCOPY ../Containerfile /").contains("outside the context"));
    assert!(refusal("FROM scratch\nCOPY absent /").starts_with("2: cannot copy absent: "));
    assert!(refusal("FROM scratch\nCOPY note /../..").starts_with("2: `/../..` cannot be a path in an image"));
}

#[test]
fn another_instruction_or_option_is_named_with_its_line() {
    assert!(refusal("FROM scratch\nUSER 1\n\nRUN true").starts_with("4: RUN is not supported"));
    assert!(refusal("FROM scratch\nADD a b").starts_with("2: ADD is not supported"));
    assert!(refusal("FROM scratch\nCOPY --from=build a b").starts_with("2: option --from=build is not supported"));
    assert!(refusal("FROM scratch\nCOPY --chmod=u+x a b").starts_with("2: option --chmod=u+x is not supported"));
    assert!(refusal("FROM scratch\nCOPY --chmod=77777 a b").starts_with("2: option --chmod=77777 is not supported"));
    assert!(refusal("FROM scratch\nENV --x A=1").starts_with("2: option --x is not supported"));
}

#[test]
fn an_image_has_one_base_and_it_is_scratch() {
    for text in
        ["", "# nothing", "USER 1\nFROM scratch", "FROM debian", "FROM scratch AS a", "FROM scratch\nFROM scratch"]
    {
        assert!(refusal(text).ends_with("an image starts with `FROM scratch`, once"), "{text:?}");
    }
}

#[test]
fn a_line_of_the_wrong_shape_says_what_it_wants() {
    for (line, wants) in [
        ("ENTRYPOINT /bin/sh -c true", "ENTRYPOINT wants its exec form, a JSON array of strings"),
        ("CMD [1]", "CMD wants its exec form, a JSON array of strings"),
        ("ENV A 1", "ENV wants `NAME=value` pairs"),
        ("LABEL", "LABEL wants `NAME=value` pairs"),
        ("EXPOSE 99999", "EXPOSE wants ports, as in `80`, `443/tcp` or `53/udp`"),
        ("EXPOSE 1/sctp", "EXPOSE wants ports, as in `80`, `443/tcp` or `53/udp`"),
        ("USER", "USER wants one user, as in `65532:65532`"),
        ("COPY note", "COPY wants sources and a destination, which ends in `/` for several"),
        ("COPY a b /c", "COPY wants sources and a destination, which ends in `/` for several"),
        ("COPY * /", "COPY wants plain paths: no wildcard, JSON form or here-document"),
        ("ENV A=$B", "variables are not expanded: write the value, or `\\$` for the character"),
        ("ENV A=\"$B\"", "variables are not expanded: write the value, or `\\$` for the character"),
        ("ENV A='b", "a quotation mark is not closed"),
    ] {
        assert_eq!(refusal(&format!("FROM scratch\n{line}")), format!("2: {wants}"), "{line}");
    }
}

#[test]
fn the_line_that_is_named_is_the_first_of_a_continued_one() {
    assert!(refusal("FROM scratch\n\nENV A=1 \\\n  B=2 \\\n  $C\n").starts_with("3: variables"));
}
