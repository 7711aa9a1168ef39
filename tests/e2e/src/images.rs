//! The images that tests run.

use std::path::PathBuf;

use anyhow::{Context, Result};
use cofferdam_cluster::cluster::Cluster;
use cofferdam_cluster::{debian, own_images};

use crate::install;

/// Says what its process is and may do; its user is root.
pub const FIXTURE: &str = "cofferdam.test/fixture:1";
/// The same program under a user that is given by name.
pub const NAMED_USER: &str = "cofferdam.test/fixture-app:1";

/// nginx, from Debian's packages, by a configuration for a user that is not root; the packaged one is there too.
pub const NGINX: &str = "cofferdam.test/nginx:1";
/// Node.js, from Debian's packages.
pub const NODE: &str = "cofferdam.test/node:1";
/// A Java virtual machine that runs source files too, from Debian's packages.
pub const JAVA: &str = "cofferdam.test/java:1";
/// Python with `IPython` and virtual environments, from Debian's packages.
pub const PYTHON: &str = "cofferdam.test/python:1";
/// A shell and the usual tools, from Debian's packages.
pub const SHELL: &str = "cofferdam.test/shell:1";

/// Puts Cofferdam and the test programs on a cluster's nodes.
///
/// # Errors
/// When an image cannot be built or imported.
pub fn load(cluster: &mut Cluster) -> Result<()> {
    load_one(cluster, own_images::cofferdam_image(install::IMAGE))?;
    load_one(cluster, own_images::fixture_image(FIXTURE))?;
    load_one(cluster, own_images::named_user_image(NAMED_USER))
}

/// Puts the images of ordinary software on a cluster's nodes.
///
/// # Errors
/// When an image cannot be built or imported.
pub fn load_debian(cluster: &mut Cluster) -> Result<()> {
    load_one(cluster, debian::nginx_image(NGINX))?;
    load_one(cluster, debian::python_image(PYTHON))?;
    load_one(cluster, debian::node_image(NODE))?;
    load_one(cluster, debian::java_image(JAVA))?;
    load_shell(cluster)
}

/// Puts the image with a shell on a cluster's nodes.
///
/// # Errors
/// When it cannot be built or imported.
pub fn load_shell(cluster: &mut Cluster) -> Result<()> {
    load_one(cluster, debian::shell_image(SHELL))
}

fn load_one<E: std::error::Error + Send + Sync + 'static>(
    cluster: &mut Cluster,
    image: Result<PathBuf, E>,
) -> Result<()> {
    let image = image.context("an image cannot be made")?;
    cluster.load(&image).with_context(|| format!("{} cannot be imported", image.display()))
}
