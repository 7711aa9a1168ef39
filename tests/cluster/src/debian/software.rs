//! The images that tests use.

use std::path::PathBuf;

use super::{DebianError, Recipe, debian_image};
use crate::image::Config;
use crate::programs::SYSTEM_PATH;

/// nginx as people set it up for a user that is not root: port 8080, everything that it writes in `/tmp`.
pub fn nginx_image(reference: &str) -> Result<PathBuf, DebianError> {
    debian_image(
        reference,
        &Recipe {
            packages: vec!["nginx"],
            files: vec![("/etc/nginx/nginx.conf", NGINX_CONF)],
            // The log that it opens before it has read its configuration lies in /var/log otherwise.
            config: runs(&["/usr/sbin/nginx", "-e", "stderr", "-g", "daemon off;"]),
        },
    )
}

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

/// Python 3 with its standard library; runs `python3`.
pub fn python_image(reference: &str) -> Result<PathBuf, DebianError> {
    debian_image(reference, &Recipe { packages: vec!["python3"], files: Vec::new(), config: runs(&["python3"]) })
}

/// A shell and the usual small programs; runs `sh`.
pub fn shell_image(reference: &str) -> Result<PathBuf, DebianError> {
    debian_image(reference, &Recipe { packages: vec!["dash", "coreutils"], files: Vec::new(), config: runs(&["sh"]) })
}

/// Everything in `Cmd`, so that a pod's `args` replace it, as in the images that people use.
fn runs(command: &[&str]) -> Config {
    Config {
        env: vec![format!("PATH={SYSTEM_PATH}")],
        cmd: command.iter().map(|&word| word.to_owned()).collect(),
        ..Config::default()
    }
}
