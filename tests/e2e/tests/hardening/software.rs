//! Ordinary software under hardening: it runs, and keeps its files where it may.

use cofferdam_e2e::images::{NGINX, PYTHON, SHELL};
use cofferdam_e2e::namespace::Sessions;

use crate::session::{assert_hardened, namespace};

#[test]
fn nginx_serves_from_a_read_only_root() {
    let namespace = namespace("nginx", Sessions::Enforced);
    namespace.run(["run", "web", &format!("--image={NGINX}"), "--port=8080"]).unwrap();
    namespace.ready("web").unwrap();
    assert_hardened(&namespace.json(["get", "pod", "web"]).unwrap());
    let page = namespace.run(["get", "--raw", "/api/v1/namespaces/nginx/pods/web:8080/proxy/"]).unwrap();
    assert!(page.contains("nginx"), "{page}");
}

#[test]
fn python_runs_and_keeps_its_files_in_tmp_and_home() {
    let namespace = namespace("python", Sessions::Enforced);
    let script = "import pathlib, sqlite3, tempfile\n\
                  tempfile.NamedTemporaryFile().write(b'x')\n\
                  (pathlib.Path.home() / 'notes').write_text('kept')\n\
                  sqlite3.connect(pathlib.Path.home() / 'db').execute('create table t (a)')\n\
                  print((pathlib.Path.home() / 'notes').read_text())";
    namespace.run(["run", "script", &format!("--image={PYTHON}"), "--", "python3", "-c", script]).unwrap();
    namespace.succeeded("script").unwrap();
    assert_eq!(namespace.logs("script", "script").unwrap().trim(), "kept");
}

#[test]
fn a_shell_works_in_its_home_and_cannot_write_elsewhere() {
    let namespace = namespace("shell", Sessions::Enforced);
    let script =
        "cd; echo mine > file; cat file > /tmp/copy; cat /tmp/copy; touch /etc/other 2> /dev/null || echo refused";
    namespace.run(["run", "script", &format!("--image={SHELL}"), "--", "sh", "-c", script]).unwrap();
    namespace.succeeded("script").unwrap();
    let said = namespace.logs("script", "script").unwrap();
    assert_eq!(said, "mine\nrefused\n");
}
