//! The images that tests use.

use std::path::PathBuf;

use super::{DebianError, Recipe, debian_image};
use crate::image::Config;
use crate::programs::SYSTEM_PATH;

/// nginx as people set it up for a user that is not root: port 8080, everything that it writes in `/tmp`.
///
/// Beside it the configuration that the package brings, which a system has after the installation: port 80, everything
/// below `/var` and `/run`. `nginx -g 'daemon off;'` runs by that.
pub fn nginx_image(reference: &str) -> Result<PathBuf, DebianError> {
    debian_image(
        reference,
        &Recipe {
            packages: vec!["nginx"],
            files: vec![(UNPRIVILEGED, NGINX_CONF)],
            links: vec![
                ("/etc/nginx/sites-enabled/default", "/etc/nginx/sites-available/default"),
                ("/var/www/html/index.nginx-debian.html", "/usr/share/nginx/html/index.html"),
            ],
            // The log that it opens before it has read its configuration lies in /var/log otherwise.
            config: runs(&["/usr/sbin/nginx", "-c", UNPRIVILEGED, "-e", "stderr", "-g", "daemon off;"]),
        },
    )
}

const UNPRIVILEGED: &str = "/etc/nginx/unprivileged.conf";

const NGINX_CONF: &str = "\
worker_processes 1;
pid /tmp/nginx.pid;
error_log stderr;

events {
    worker_connections 256;
}

http {
    include /etc/nginx/mime.types;
    access_log /dev/stdout;
    client_body_temp_path /tmp/client_body;
    proxy_temp_path /tmp/proxy;
    fastcgi_temp_path /tmp/fastcgi;
    uwsgi_temp_path /tmp/uwsgi;
    scgi_temp_path /tmp/scgi;

    server {
        listen 8080;
        root /usr/share/nginx/html;
    }
}
";

/// Python 3 with `IPython` and what makes virtual environments; runs `python3`.
pub fn python_image(reference: &str) -> Result<PathBuf, DebianError> {
    debian_image(
        reference,
        &Recipe {
            packages: vec!["python3", "python3-ipython", "python3-venv"],
            config: runs(&["python3"]),
            ..Recipe::default()
        },
    )
}

/// Node.js, without npm, of which Debian makes hundreds of packages; runs `node`.
pub fn node_image(reference: &str) -> Result<PathBuf, DebianError> {
    debian_image(reference, &Recipe { packages: vec!["nodejs"], config: runs(&["node"]), ..Recipe::default() })
}

/// A Java virtual machine; runs `java`, which takes a source file too: Debian's has the compiler's module.
pub fn java_image(reference: &str) -> Result<PathBuf, DebianError> {
    debian_image(
        reference,
        &Recipe {
            packages: vec!["default-jre-headless"],
            links: vec![("/usr/bin/java", "/usr/lib/jvm/default-java/bin/java")],
            config: runs(&["java"]),
            ..Recipe::default()
        },
    )
}

/// A shell and the usual small programs, among them `busybox`, which serves files by HTTP; runs `sh`.
pub fn shell_image(reference: &str) -> Result<PathBuf, DebianError> {
    let packages = vec!["dash", "coreutils", "busybox", "perl-base"];
    debian_image(reference, &Recipe { packages, config: runs(&["sh"]), ..Recipe::default() })
}

/// Prometheus, with a shell, curl and jq, to tell it where pods are; runs `prometheus`, whose arguments a pod gives.
pub fn prometheus_image(reference: &str) -> Result<PathBuf, DebianError> {
    let entrypoint = vec!["/usr/bin/prometheus".to_owned()];
    let config = Config { entrypoint, ..runs(&[]) };
    debian_image(
        reference,
        &Recipe { packages: vec!["prometheus", "curl", "jq", "dash", "coreutils"], config, ..Recipe::default() },
    )
}

/// Everything in `Cmd`, so that a pod's `args` replace it, as in the images that people use.
fn runs(command: &[&str]) -> Config {
    Config {
        env: vec![format!("PATH={SYSTEM_PATH}")],
        cmd: command.iter().map(|&word| word.to_owned()).collect(),
        ..Config::default()
    }
}
