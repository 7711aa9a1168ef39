//! Containers of one pod that run as different users and share a directory through the pod's `fsGroup`.
//!
//! A kubelet makes such a volume the group's, writable for it, and lets what is made in it inherit the group. What it
//! cannot do is open what a process closes: with the usual umask, 022, a file or directory is its maker's alone to
//! change. Cofferdam changes no umask, so that holds in a session as it does anywhere.

use cofferdam_e2e::images::SHELL;
use cofferdam_e2e::namespace::Sessions;

use crate::session::{assert_hardened, namespace};

#[test]
fn two_users_share_the_scratch_directory_as_far_as_the_writers_umask_allows() {
    let namespace = namespace("two-users", Sessions::Enforced);
    let created = namespace
        .create_object(&format!(
            r#"
apiVersion: v1
kind: Pod
metadata: {{name: pair}}
spec:
  securityContext: {{fsGroup: 2000}}
  containers:
  - name: writer
    image: "{SHELL}"
    securityContext: {{runAsUser: 1001, runAsGroup: 1001}}
    args:
    - sh
    - -c
    - |
      cd
      umask 002; echo first > open
      umask 022; echo first > closed
      touch written
  - name: reader
    image: "{SHELL}"
    securityContext: {{runAsUser: 1002, runAsGroup: 1002}}
    args:
    - sh
    - -c
    - |
      cd
      until [ -e written ]; do sleep 0.1; done
      echo second >> open
      (echo second >> closed) 2> /dev/null || echo refused
      cat open closed
      stat --format='%n %u:%g %a' open closed
"#
        ))
        .unwrap();
    assert_hardened(&created.pod);
    assert_eq!(created.warnings, Vec::<String>::new());
    namespace.succeeded("pair").unwrap();
    let said = namespace.logs("pair", "reader").unwrap();
    assert_eq!(said, "refused\nfirst\nsecond\nfirst\nopen 1001:2000 664\nclosed 1001:2000 644\n");
}

#[test]
fn b67_a_directory_from_an_init_container_of_another_user_is_open_to_the_group_only_by_its_umask() {
    let namespace = namespace("b67", Sessions::Enforced);
    let created = namespace
        .create_object(&format!(
            r#"
apiVersion: v1
kind: Pod
metadata: {{name: prepared}}
spec:
  securityContext: {{fsGroup: 2000}}
  volumes: [{{name: work, emptyDir: {{}}}}]
  initContainers:
  - name: prepare
    image: "{SHELL}"
    securityContext: {{runAsUser: 65532, runAsGroup: 65532}}
    volumeMounts: [{{name: work, mountPath: /work}}]
    args: [sh, -c, umask 002; mkdir /work/open; umask 022; mkdir /work/closed]
  containers:
  - name: app
    image: "{SHELL}"
    securityContext: {{runAsUser: 8001, runAsGroup: 8001}}
    volumeMounts: [{{name: work, mountPath: /work}}]
    args:
    - sh
    - -c
    - |
      cd /work
      for folder in . open closed; do
        stat --format='%n %u:%g %a' $folder
        touch $folder/file 2> /dev/null && echo written || echo refused
      done
"#
        ))
        .unwrap();
    assert_hardened(&created.pod);
    assert_eq!(created.warnings, Vec::<String>::new());
    namespace.succeeded("prepared").unwrap();
    let said = namespace.logs("prepared", "app").unwrap();
    let expected = ". 0:2000 2777\nwritten\nopen 65532:2000 2775\nwritten\nclosed 65532:2000 2755\nrefused\n";
    assert_eq!(said, expected);
}
