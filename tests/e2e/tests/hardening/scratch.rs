//! Writable directories of containers whose root is read-only.

use cofferdam_e2e::images::SHELL;
use cofferdam_e2e::namespace::Sessions;

use crate::session::{assert_hardened, namespace};

#[test]
fn each_container_has_a_tmp_of_its_own_and_all_share_a_home_whoever_they_run_as() {
    let namespace = namespace("scratch", Sessions::Enforced);
    let created = namespace
        .create_object(&format!(
            r#"
apiVersion: v1
kind: Pod
metadata: {{name: pair}}
spec:
  initContainers:
  - name: first
    image: "{SHELL}"
    args: [sh, -c, umask 002; echo first > /tmp/who; echo first > $HOME/who; mkdir -p $XDG_CACHE_HOME/x]
  containers:
  - name: second
    image: "{SHELL}"
    securityContext: {{runAsUser: 1001}}
    args:
    - sh
    - -c
    - |
      echo second > $TMPDIR/own && cat $TMPDIR/own
      ls /tmp
      echo second >> $HOME/who && cat $HOME/who
      touch $XDG_CACHE_HOME/x/y 2> /dev/null && echo cached
"#
        ))
        .unwrap();
    assert_hardened(&created.pod);
    assert_eq!(created.warnings, Vec::<String>::new());
    namespace.succeeded("pair").unwrap();
    assert_eq!(namespace.logs("pair", "second").unwrap(), "second\nown\nfirst\nsecond\ncached\n");
}
