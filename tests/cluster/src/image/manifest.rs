//! The JSON documents of an image: configuration, manifest, index.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::{Blob, Config, ImageError, Reference};
use crate::architecture::architecture;

const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar";

/// The documents, encoded.
pub(super) struct Documents {
    layout: Vec<u8>,
    index: Vec<u8>,
    config: (Blob, Vec<u8>),
    manifest: (Blob, Vec<u8>),
}

impl Documents {
    /// What a reader wants first, by name.
    pub(super) fn before_blobs(&self) -> [(&'static str, &Vec<u8>); 2] {
        [("oci-layout", &self.layout), ("index.json", &self.index)]
    }

    /// What is named by its digest.
    pub(super) fn blobs(&self) -> [&(Blob, Vec<u8>); 2] {
        [&self.config, &self.manifest]
    }

    /// What names the image in this one form.
    pub(super) fn manifest_digest(&self) -> String {
        self.manifest.0.digest()
    }
}

/// Builds all documents for an image of this machine's architecture.
pub(super) fn documents(reference: &Reference, config: &Config, layers: &[Blob]) -> Result<Documents, ImageError> {
    let diff_ids: Vec<_> = layers.iter().map(Blob::digest).collect();
    let config = blob(
        "configuration",
        &json!({
            "architecture": architecture(),
            "os": "linux",
            "config": config,
            // Layers are not compressed, so that a layer's digest is also that of its content.
            "rootfs": { "type": "layers", "diff_ids": diff_ids },
        }),
    )?;
    let layers: Vec<_> = layers.iter().map(|layer| descriptor(LAYER, layer)).collect();
    let manifest = blob(
        "manifest",
        &json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": descriptor(CONFIG, &config.0),
            "layers": layers,
        }),
    )?;
    let mut entry = descriptor(MANIFEST, &manifest.0);
    entry["platform"] = json!({ "architecture": architecture(), "os": "linux" });
    // The first is containerd's own and holds the full name; the second is the specification's and holds the tag.
    entry["annotations"] = json!(BTreeMap::from([
        ("io.containerd.image.name", reference.full().as_str()),
        ("org.opencontainers.image.ref.name", reference.tag()),
    ]));
    let index = json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": [entry] });
    Ok(Documents {
        layout: encode("layout", &json!({ "imageLayoutVersion": "1.0.0" }))?,
        index: encode("index", &index)?,
        config,
        manifest,
    })
}

fn descriptor(media_type: &str, blob: &Blob) -> Value {
    json!({ "mediaType": media_type, "digest": blob.digest(), "size": blob.size })
}

fn blob(what: &'static str, document: &Value) -> Result<(Blob, Vec<u8>), ImageError> {
    let bytes = encode(what, document)?;
    Ok((Blob::of(&bytes), bytes))
}

fn encode(what: &'static str, document: &impl Serialize) -> Result<Vec<u8>, ImageError> {
    serde_json::to_vec(document).map_err(|cause| ImageError::Encode { what, cause })
}

/// The specification writes a set as an object whose values are empty objects.
pub(super) fn set_as_object<S: Serializer>(set: &BTreeSet<String>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(set.iter().map(|member| (member, json!({}))))
}
