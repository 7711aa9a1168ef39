//! The root folder of an image, filled from package archives.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use super::{DebianError, apt};

/// What no program needs to run, and what Debian's own slim images leave out too.
const LEFT_OUT: [&str; 6] =
    ["usr/share/doc", "usr/share/info", "usr/share/lintian", "usr/share/locale", "usr/share/man", "usr/share/bug"];

/// Makes the folder with what belongs to no package, or to one that nothing names as a dependency.
pub(super) fn create(root: &Path) -> Result<(), DebianError> {
    for folder in ["usr/bin", "usr/sbin", "usr/lib", "usr/lib64", "etc", "home", "run", "var"] {
        let folder = root.join(folder);
        fs::create_dir_all(&folder).map_err(DebianError::io("create", &folder))?;
    }
    // Packages of Debian 12 still hold files in /bin and /lib, which lie in /usr since then.
    for name in ["bin", "sbin", "lib", "lib64"] {
        let link = root.join(name);
        symlink(format!("usr/{name}"), &link).map_err(DebianError::io("create", &link))?;
    }
    for (folder, mode) in [("tmp", 0o1777), ("var/tmp", 0o1777), ("root", 0o700)] {
        let folder = root.join(folder);
        fs::create_dir(&folder)
            .and_then(|()| fs::set_permissions(&folder, Permissions::from_mode(mode)))
            .map_err(DebianError::io("create", &folder))?;
    }
    write(root, "etc/passwd", "root:x:0:0:root:/root:/bin/sh\nwww-data:x:33:33:www-data:/var/www:/usr/sbin/nologin\n")?;
    write(root, "etc/group", "root:x:0:\nwww-data:x:33:\n")
}

/// Writes one file of root's with mode 644 and makes its folder.
pub(super) fn write(root: &Path, path: &str, content: &str) -> Result<(), DebianError> {
    place(root, path, |path| {
        fs::write(path, content)?;
        fs::set_permissions(path, Permissions::from_mode(0o644))
    })
}

/// Makes one symbolic link and its folder.
pub(super) fn link(root: &Path, path: &str, target: &str) -> Result<(), DebianError> {
    place(root, path, |path| symlink(target, path))
}

/// Puts something at a path of the image, whose folder is made.
fn place(root: &Path, path: &str, put: impl FnOnce(&Path) -> io::Result<()>) -> Result<(), DebianError> {
    let path = root.join(path.trim_start_matches('/'));
    let folder = path.parent().unwrap_or(root);
    fs::create_dir_all(folder).and_then(|()| put(&path)).map_err(DebianError::io("write", &path))
}

/// Unpacks the files of one package archive, with their owners and modes, and runs nothing of it.
pub(super) fn unpack(archive: &Path, root: &Path) -> Result<(), DebianError> {
    let mut child = Command::new("dpkg-deb")
        .arg("--fsys-tarfile")
        .arg(archive)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|cause| apt::unstartable("dpkg-deb", cause))?;
    let unpacked = child.stdout.take().map_or(Ok(()), |files| unpack_files(tar::Archive::new(files), root));
    let status = child.wait().map_err(DebianError::io("read", archive))?;
    unpacked.map_err(DebianError::io("unpack", archive))?;
    if status.success() {
        return Ok(());
    }
    Err(DebianError::Command {
        command: "dpkg-deb --fsys-tarfile".to_owned(),
        status: status.to_string(),
        output: format!("its message is above; the archive is {}", archive.display()),
    })
}

pub(super) fn unpack_files(mut files: tar::Archive<impl io::Read>, root: &Path) -> io::Result<()> {
    files.set_preserve_permissions(true);
    files.set_preserve_ownerships(true);
    files.set_preserve_mtime(false);
    for file in files.entries()? {
        let mut file = file?;
        let path = file.path()?.into_owned();
        let path = path.strip_prefix(".").unwrap_or(&path);
        if LEFT_OUT.iter().any(|folder| path.starts_with(folder)) {
            continue;
        }
        // A directory that is a link here, as /bin is, stays one.
        if file.header().entry_type().is_dir() && root.join(path).is_dir() {
            continue;
        }
        // Refuses what would lie outside the root, through a link too.
        if !file.unpack_in(root)? {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a path in it leaves the root"));
        }
    }
    Ok(())
}
