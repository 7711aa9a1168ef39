//! Whether a program names a dynamic loader.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

/// `PT_INTERP` of elf(5): a segment with the path of the loader that the kernel starts in the program's place.
const PT_INTERP: u32 = 3;

/// Reads the program headers of a 64-bit ELF file of this machine's byte order; anything else is an error.
///
/// A static program may well be position-independent and have a dynamic section; what it lacks is this segment.
pub(super) fn has_interpreter(path: &Path) -> io::Result<bool> {
    let file = File::open(path)?;
    let mut header = [0; 64];
    file.read_exact_at(&mut header, 0)?;
    if !header.starts_with(b"\x7fELF\x02") {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "not a 64-bit ELF program"));
    }
    let half = |at: usize| u64::from(u16::from_ne_bytes([header[at], header[at + 1]]));
    let mut offset = [0; 8];
    offset.copy_from_slice(&header[0x20..0x28]);
    let (table, size, count) = (u64::from_ne_bytes(offset), half(0x36), half(0x38));
    for index in 0..count {
        let mut kind = [0; 4];
        file.read_exact_at(&mut kind, table.saturating_add(index * size))?;
        if u32::from_ne_bytes(kind) == PT_INTERP {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_program_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "#!/bin/sh\n").unwrap();
        assert!(has_interpreter(&file).is_err());
        std::fs::write(&file, [b'x'; 64]).unwrap();
        assert!(has_interpreter(&file).is_err());
    }
}
