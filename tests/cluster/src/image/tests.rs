use std::collections::HashMap;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use serde_json::{Value, json};
use tempfile::tempdir;

use super::*;

/// A written image, taken apart.
struct Parts {
    order: Vec<String>,
    files: HashMap<String, Vec<u8>>,
}

impl Parts {
    fn read(path: &Path) -> Self {
        let mut archive = tar::Archive::new(File::open(path).unwrap());
        let mut parts = Self { order: Vec::new(), files: HashMap::new() };
        for entry in archive.entries().unwrap() {
            let mut entry = entry.unwrap();
            let name = entry.path().unwrap().to_str().unwrap().to_owned();
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).unwrap();
            parts.order.push(name.clone());
            parts.files.insert(name, bytes);
        }
        parts
    }

    fn json(&self, name: &str) -> Value {
        serde_json::from_slice(&self.files[name]).unwrap()
    }

    /// The bytes that a descriptor points at, whose digest and size are checked.
    fn follow(&self, descriptor: &Value) -> &[u8] {
        let digest = descriptor["digest"].as_str().unwrap().strip_prefix("sha256:").unwrap();
        let bytes = &self.files[&format!("blobs/sha256/{digest}")];
        assert_eq!(hexadecimal(&Sha256::digest(bytes)), digest);
        assert_eq!(descriptor["size"], bytes.len());
        bytes
    }

    fn manifest(&self) -> Value {
        serde_json::from_slice(self.follow(&self.json("index.json")["manifests"][0])).unwrap()
    }

    fn config(&self) -> Value {
        serde_json::from_slice(self.follow(&self.manifest()["config"])).unwrap()
    }
}

/// What a layer's tar says about one entry: path, kind, mode, owner, link target, content.
#[derive(Debug, PartialEq, Eq)]
struct Packed {
    path: String,
    kind: tar::EntryType,
    mode: u32,
    owner: (u64, u64),
    link: Option<PathBuf>,
    content: String,
}

fn pack(layer: &Layer) -> Vec<Packed> {
    let mut bytes = Vec::new();
    layer.write(&mut bytes, Path::new("memory")).unwrap();
    let mut packed = Vec::new();
    for entry in tar::Archive::new(bytes.as_slice()).entries().unwrap() {
        let mut entry = entry.unwrap();
        let mut content = String::new();
        entry.read_to_string(&mut content).unwrap();
        assert_eq!(entry.header().mtime().unwrap(), 0);
        packed.push(Packed {
            path: String::from_utf8(entry.path_bytes().into_owned()).unwrap(),
            kind: entry.header().entry_type(),
            mode: entry.header().mode().unwrap(),
            owner: (entry.header().uid().unwrap(), entry.header().gid().unwrap()),
            link: entry.link_name().unwrap().map(std::borrow::Cow::into_owned),
            content,
        });
    }
    packed
}

fn image(layers: Vec<Layer>, config: Config) -> Image {
    Image { reference: "fixture:1".parse().unwrap(), layers, config }
}

fn layer(name: &str, content: &str) -> Layer {
    let mut layer = Layer::new();
    layer.text(name, 0o644, content).unwrap();
    layer
}

#[test]
fn every_descriptor_leads_to_bytes_of_its_digest_and_size() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("image.tar");
    let digest = image(vec![layer("a", "first"), layer("b", "second")], Config::default()).write(&path).unwrap();

    let parts = Parts::read(&path);
    assert_eq!(parts.json("oci-layout"), json!({ "imageLayoutVersion": "1.0.0" }));
    assert_eq!(parts.json("index.json")["manifests"][0]["digest"], digest);
    let manifest = parts.manifest();
    let layers = manifest["layers"].as_array().unwrap();
    assert_eq!(layers.len(), 2);
    for (described, text) in layers.iter().zip(["first", "second"]) {
        let mut archive = tar::Archive::new(parts.follow(described));
        let mut content = String::new();
        archive.entries().unwrap().next().unwrap().unwrap().read_to_string(&mut content).unwrap();
        assert_eq!(content, text);
    }
    let digests: Vec<_> = layers.iter().map(|layer| layer["digest"].clone()).collect();
    assert_eq!(parts.config()["rootfs"], json!({ "type": "layers", "diff_ids": digests }));
}

#[test]
fn the_index_precedes_the_blobs_and_names_the_image_as_containerd_looks_it_up() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("image.tar");
    image(vec![layer("a", "a")], Config::default()).write(&path).unwrap();

    let parts = Parts::read(&path);
    assert_eq!(parts.order[..2], ["oci-layout", "index.json"]);
    let annotations = &parts.json("index.json")["manifests"][0]["annotations"];
    assert_eq!(annotations["io.containerd.image.name"], "docker.io/library/fixture:1");
    assert_eq!(annotations["org.opencontainers.image.ref.name"], "1");
}

#[test]
fn the_configuration_has_the_names_of_the_specification_and_leaves_out_what_is_empty() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("image.tar");
    let config = Config {
        user: "1000:1000".into(),
        exposed_ports: BTreeSet::from(["80/tcp".into()]),
        env: vec!["PATH=/bin".into()],
        entrypoint: vec!["/fixture".into()],
        cmd: vec!["sleep".into()],
        working_dir: "/srv".into(),
        labels: BTreeMap::from([("a".into(), "b".into())]),
    };
    image(vec![], config).write(&path).unwrap();
    assert_eq!(
        Parts::read(&path).config()["config"],
        json!({
            "User": "1000:1000", "ExposedPorts": { "80/tcp": {} }, "Env": ["PATH=/bin"], "Entrypoint": ["/fixture"],
            "Cmd": ["sleep"], "WorkingDir": "/srv", "Labels": { "a": "b" },
        })
    );

    image(vec![], Config::default()).write(&path).unwrap();
    let config = Parts::read(&path).config();
    assert_eq!(config["config"], json!({}));
    assert_eq!(config["os"], "linux");
    #[cfg(target_arch = "x86_64")]
    assert_eq!(config["architecture"], "amd64");
    #[cfg(target_arch = "aarch64")]
    assert_eq!(config["architecture"], "arm64");
}

#[test]
fn the_same_inputs_give_the_same_bytes_whatever_order_and_time_they_have() {
    let folder = tempdir().unwrap();
    let write = |name: &str, files: [&str; 3]| {
        let source = folder.path().join(name);
        fs::create_dir(&source).unwrap();
        for file in files {
            fs::write(source.join(file), file).unwrap();
        }
        // Another time of change, as a second build of the same sources would have.
        File::open(source.join("b")).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
        let mut layer = Layer::new();
        layer.copy_contents(&source, "/srv", Override::root_owned()).unwrap();
        let path = folder.path().join(format!("{name}.tar"));
        image(vec![layer], Config::default()).write(&path).unwrap();
        fs::read(path).unwrap()
    };
    assert_eq!(write("one", ["a", "b", "c"]), write("two", ["c", "b", "a"]));
}

#[test]
fn a_file_with_the_same_bytes_is_left_alone_and_another_is_replaced() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("image.tar");
    let inode = || std::os::unix::fs::MetadataExt::ino(&fs::metadata(&path).unwrap());
    image(vec![layer("a", "one")], Config::default()).write(&path).unwrap();
    // Held open, so that its inode cannot be given to the next file.
    let _held = File::open(&path).unwrap();
    let first = inode();
    image(vec![layer("a", "one")], Config::default()).write(&path).unwrap();
    assert_eq!(inode(), first);
    image(vec![layer("a", "two")], Config::default()).write(&path).unwrap();
    assert_ne!(inode(), first);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "a temporary file stayed");
}

#[test]
fn parents_come_first_and_are_made_once() {
    let mut layer = Layer::new();
    layer.text("/usr/bin/b", 0o755, "b").unwrap();
    layer.text("usr/bin-a", 0o644, "a").unwrap();
    layer.link("/bin", "usr/bin").unwrap();
    layer.directory("/tmp", 0o1777).unwrap();
    let packed = pack(&layer);
    let paths: Vec<_> = packed.iter().map(|entry| (entry.path.as_str(), entry.mode)).collect();
    assert_eq!(
        paths,
        [
            ("bin", 0o777),
            ("tmp/", 0o1777),
            ("usr/", 0o755),
            ("usr/bin/", 0o755),
            ("usr/bin/b", 0o755),
            ("usr/bin-a", 0o644)
        ]
    );
    assert_eq!(packed[0].link.as_deref(), Some(Path::new("usr/bin")));
    assert_eq!(packed[0].kind, tar::EntryType::Symlink);
    assert_eq!(packed[4].content, "b");
}

#[test]
fn a_copied_tree_keeps_modes_and_links_and_takes_the_owner_it_is_given() {
    let source = tempdir().unwrap();
    fs::create_dir(source.path().join("bin")).unwrap();
    fs::write(source.path().join("bin/tool"), "tool").unwrap();
    fs::set_permissions(source.path().join("bin/tool"), fs::Permissions::from_mode(0o4751)).unwrap();
    symlink("/nowhere", source.path().join("bin/dangling")).unwrap();

    let mut layer = Layer::new();
    layer.copy_contents(source.path(), "/opt", Override { mode: None, owner: Some((3, 4)) }).unwrap();
    let packed = pack(&layer);
    assert_eq!(
        packed.iter().map(|entry| &*entry.path).collect::<Vec<_>>(),
        ["opt/", "opt/bin/", "opt/bin/dangling", "opt/bin/tool"]
    );
    assert_eq!(packed[2].link.as_deref(), Some(Path::new("/nowhere")));
    assert_eq!((packed[3].mode, packed[3].owner, &*packed[3].content), (0o4751, (3, 4), "tool"));
    assert_eq!(packed[0].owner, (0, 0), "a parent that nothing describes is root's");
}

#[test]
fn names_and_link_targets_longer_than_a_tar_header_survive() {
    let long = format!("{}/{}", "d".repeat(200), "f".repeat(200));
    let mut layer = Layer::new();
    layer.text(&long, 0o644, "x").unwrap();
    layer.link("link", &long).unwrap();
    let packed = pack(&layer);
    assert_eq!(packed[1].path, long);
    assert_eq!(packed[2].link.as_deref(), Some(Path::new(&long)));
}

#[test]
fn a_path_out_of_the_root_or_below_a_file_is_refused() {
    let mut layer = Layer::new();
    assert!(matches!(layer.text("/a/../../b", 0o644, ""), Err(ImageError::PathInImage(_))));
    layer.link("/bin", "usr/bin").unwrap();
    assert!(matches!(layer.text("/bin/sh", 0o755, ""), Err(ImageError::NotADirectory(_))));
    assert!(matches!(layer.directory("/bin", 0o755), Err(ImageError::NotADirectory(_))));
    layer.directory("/etc", 0o755).unwrap();
    assert!(matches!(layer.text("/etc", 0o644, ""), Err(ImageError::NotADirectory(_))));
}

#[test]
fn a_file_that_holds_less_than_its_size_said_spoils_nothing_silently() {
    // The kernel gives every file of sysfs a size of one page, whatever it holds.
    let shorter = Path::new("/sys/devices/system/cpu/online");
    let mut layer = Layer::new();
    layer.copy(shorter, "/log", Override::root_owned()).unwrap();
    assert!(matches!(layer.write(io::sink(), Path::new("memory")), Err(ImageError::Changed(path)) if path == shorter));
}

#[test]
fn a_socket_in_a_copied_folder_is_refused() {
    let source = tempdir().unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(source.path().join("socket")).unwrap();
    let copied = Layer::new().copy_contents(source.path(), "/", Override::root_owned()).map(|_| ());
    assert!(matches!(copied, Err(ImageError::SpecialFile(_))));
}

#[test]
fn a_name_is_completed_as_a_kubelet_completes_it() {
    for (short, full) in [
        ("fixture:1", "docker.io/library/fixture:1"),
        ("cofferdam/webhook:dev", "docker.io/cofferdam/webhook:dev"),
        ("localhost/a:1", "localhost/a:1"),
        ("registry.test:5000/a/b:v1.2", "registry.test:5000/a/b:v1.2"),
    ] {
        assert_eq!(short.parse::<Reference>().unwrap().full(), full);
    }
    assert_eq!("registry.test:5000/a/b:v1".parse::<Reference>().unwrap().file_name(), "registry.test_5000_a_b_v1.tar");
    assert_eq!("fixture:1".parse::<Reference>().unwrap().file_name(), "fixture_1.tar");
}

#[test]
fn a_name_that_would_make_the_kubelet_pull_or_is_none_is_refused() {
    for bad in [
        "fixture",
        "fixture:latest",
        "fixture:",
        "host:5000/fixture",
        "Fixture:1",
        "a//b:1",
        ":1",
        "a@sha256:00",
        "a:-b",
        "a b:1",
    ] {
        assert!(bad.parse::<Reference>().is_err(), "{bad:?} was taken");
    }
}
