//! Ordinary software under hardening: it runs, and keeps its files where it may.

use cofferdam_e2e::images::{JAVA, NGINX, NODE, PYTHON, SHELL};
use cofferdam_e2e::namespace::{Sessions, TestNamespace};
use cofferdam_e2e::port_forward::PortForward;
use cofferdam_e2e::stage::Stage;
use serde_json::{Value, json};

use crate::session::{MIB, assert_hardened, namespace};

/// Runs `command` in a pod of its own to its end and returns what it printed.
fn printed(namespace: &TestNamespace, image: &str, command: &[&str]) -> String {
    let image = format!("--image={image}");
    namespace.run([&["run", "script", &image, "--"], command].concat()).unwrap();
    namespace.succeeded("script").unwrap();
    namespace.logs("script", "script").unwrap()
}

/// Creates a pod whose one container answers HTTP on `port`, and returns the page that it serves.
fn served(namespace: &TestNamespace, container: Value, port: u16, volumes: &Value) -> String {
    let mut container = container;
    container["name"] = json!("app");
    container["ports"] = json!([{ "containerPort": port }]);
    container["readinessProbe"] = json!({ "httpGet": { "port": port }, "periodSeconds": 1 });
    let spec = json!({ "containers": [container], "volumes": volumes });
    let pod = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "web" }, "spec": spec });
    let created = namespace.create_object(&pod.to_string()).unwrap();
    assert_hardened(&created.pod);
    assert_eq!(created.warnings, Vec::<String>::new());
    namespace.ready("web").unwrap();
    // Through the kubelet: to the API server, on another node, the network policy of sessions is shut.
    let forward = PortForward::to(&Stage::shared().kubectl, namespace.name(), "web", port).unwrap();
    forward.door().get("localhost").unwrap().body
}

#[test]
fn nginx_serves_from_a_read_only_root() {
    let namespace = namespace("nginx", Sessions::Enforced);
    let page = served(&namespace, json!({ "image": NGINX }), 8080, &json!([]));
    assert!(page.contains("Welcome to nginx"), "{page}");
}

/// What the configuration that nginx's package brings makes it run; it writes below `/var` and `/run`.
const PACKAGED_NGINX: [&str; 3] = ["nginx", "-g", "daemon off;"];

#[test]
fn nginx_as_packaged_names_the_directory_that_it_cannot_write() {
    let namespace = namespace("nginx-packaged", Sessions::Enforced);
    namespace.run([&["run", "web", &format!("--image={NGINX}"), "--"][..], &PACKAGED_NGINX].concat()).unwrap();
    namespace.failed("web").unwrap();
    let said = namespace.logs("web", "web").unwrap();
    assert!(said.contains(r#"mkdir() "/var/lib/nginx/body" failed (30: Read-only file system)"#), "{said}");
}

#[test]
fn nginx_as_packaged_serves_on_port_80_with_volumes_where_it_writes() {
    let namespace = namespace("nginx-volumes", Sessions::Enforced);
    let container = json!({
        "image": NGINX,
        "args": PACKAGED_NGINX,
        "volumeMounts": [
            { "name": "data", "mountPath": "/var/lib/nginx" },
            { "name": "logs", "mountPath": "/var/log/nginx" },
            { "name": "run", "mountPath": "/run" },
        ],
    });
    let volumes = ["data", "logs", "run"].map(|name| json!({ "name": name, "emptyDir": {} }));
    let page = served(&namespace, container, 80, &json!(volumes));
    assert!(page.contains("Welcome to nginx"), "{page}");
}

#[test]
fn node_serves_and_keeps_its_files_in_tmp_and_home() {
    let namespace = namespace("node", Sessions::Enforced);
    let script = r"
const fs = require('fs'), http = require('http'), os = require('os'), path = require('path'), v8 = require('v8');
const keep = folder => {
  try {
    const file = path.join(fs.mkdtempSync(path.join(folder, 'kept-')), 'file');
    fs.writeFileSync(file, 'kept');
    return fs.readFileSync(file, 'utf8');
  } catch (error) {
    return error.code;
  }
};
http.createServer((_, answer) => answer.end(JSON.stringify({
  tmp: keep(os.tmpdir()), home: keep(os.homedir()), root: keep('/'), heap: v8.getHeapStatistics().heap_size_limit,
}))).listen(3000);
";
    let page = served(&namespace, json!({ "image": NODE, "args": ["node", "-e", script] }), 3000, &json!([]));
    let mut found: Value = serde_json::from_str(&page).unwrap();
    let heap = found["heap"].take().as_u64().unwrap();
    assert_eq!(found, json!({ "tmp": "kept", "home": "kept", "root": "EROFS", "heap": null }));
    assert!(heap <= 512 * MIB, "node would collect no garbage before the kernel kills it: {heap}");
}

#[test]
fn a_java_machine_keeps_its_files_in_tmp_and_home_and_its_heap_within_the_limit() {
    let namespace = namespace("java", Sessions::Enforced);
    let program = r#"
import java.nio.file.*;

public class Main {
    public static void main(String[] arguments) throws Exception {
        for (String folder : new String[] { System.getProperty("java.io.tmpdir"), System.getenv("HOME"), "/" }) {
            try {
                Path file = Files.createTempFile(Path.of(folder), "kept", "");
                System.out.println(folder + ": " + Files.readString(Files.writeString(file, "kept")));
            } catch (FileSystemException refused) {
                System.out.println(folder + ": " + refused.getReason());
            }
        }
        System.out.println(Runtime.getRuntime().maxMemory());
    }
}
"#;
    namespace.run(["create", "configmap", "program", &format!("--from-literal=Main.java={program}")]).unwrap();
    let pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": "program" },
        "spec": {
            "containers": [{
                "name": "app",
                "image": JAVA,
                "args": ["java", "/program/Main.java"],
                "volumeMounts": [{ "name": "program", "mountPath": "/program" }],
            }],
            "volumes": [{ "name": "program", "configMap": { "name": "program" } }],
        },
    });
    assert_hardened(&namespace.create_object(&pod.to_string()).unwrap().pod);
    namespace.succeeded("program").unwrap();
    let said = namespace.logs("program", "app").unwrap();
    let said: Vec<&str> = said.lines().collect();
    assert_eq!(said[..3], ["/tmp: kept", "/home/session: kept", "/: Read-only file system"]);
    let heap: u64 = said[3].parse().unwrap();
    assert!(heap < 512 * MIB, "it would collect no garbage before the kernel kills it: {heap}");
}

#[test]
fn python_runs_and_keeps_its_files_in_tmp_and_home() {
    let namespace = namespace("python", Sessions::Enforced);
    let script = "import pathlib, sqlite3, tempfile\n\
                  tempfile.NamedTemporaryFile().write(b'x')\n\
                  (pathlib.Path.home() / 'notes').write_text('kept')\n\
                  sqlite3.connect(pathlib.Path.home() / 'db').execute('create table t (a)')\n\
                  print((pathlib.Path.home() / 'notes').read_text())";
    assert_eq!(printed(&namespace, PYTHON, &["python3", "-c", script]), "kept\n");
}

#[test]
fn ipython_keeps_its_history_and_its_completions_in_home() {
    let namespace = namespace("ipython", Sessions::Enforced);
    let script = r"
import jedi, pathlib, sqlite3, subprocess, sys
subprocess.run([sys.executable, '-m', 'IPython'], input='6 * 7', text=True, check=True, stdout=subprocess.DEVNULL)
history = sqlite3.connect(pathlib.Path.home() / '.ipython/profile_default/history.sqlite')
print(history.execute('select source from history').fetchone()[0])
print([completion.name for completion in jedi.Script('import json; json.loa').complete()])
print(any((pathlib.Path.home() / '.cache/jedi').rglob('*.pkl')))
";
    assert_eq!(printed(&namespace, PYTHON, &["python3", "-c", script]), "6 * 7\n['load', 'loads']\nTrue\n");
}

#[test]
fn pip_installs_a_package_into_a_virtual_environment_in_home() {
    let namespace = namespace("pip", Sessions::Enforced);
    let script = r"
import pathlib, subprocess, sys, zipfile
home = pathlib.Path.home()
wheel = home / 'answer-1-py3-none-any.whl'
with zipfile.ZipFile(wheel, 'w') as files:
    files.writestr('answer.py', 'print(6 * 7)\n')
    files.writestr('answer-1.dist-info/METADATA', 'Metadata-Version: 2.1\nName: answer\nVersion: 1\n')
    files.writestr('answer-1.dist-info/WHEEL', 'Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n')
    files.writestr('answer-1.dist-info/RECORD', '')
subprocess.run([sys.executable, '-m', 'venv', home / 'venv'], check=True)
subprocess.run([home / 'venv/bin/pip', 'install', '--quiet', '--no-index', wheel], check=True)
subprocess.run([home / 'venv/bin/python', '-m', 'answer'], check=True)
";
    assert_eq!(printed(&namespace, PYTHON, &["python3", "-c", script]), "42\n");
}

#[test]
fn a_shell_works_in_its_home_and_cannot_write_elsewhere() {
    let namespace = namespace("shell", Sessions::Enforced);
    let script =
        "cd; echo mine > file; cat file > /tmp/copy; cat /tmp/copy; touch /etc/other 2> /dev/null || echo refused";
    assert_eq!(printed(&namespace, SHELL, &["sh", "-c", script]), "mine\nrefused\n");
}
