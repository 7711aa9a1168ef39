//! Archives as nobody's tools would make them.
#![allow(dead_code, reason = "each test program uses a part of it")]

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;

/// One entry's header, with the link's target and the size as given, whatever they are.
pub(crate) fn header(name: &[u8], kind: u8, mode: u32, link: &[u8], size: u64) -> [u8; 512] {
    let mut block = [0; 512];
    let mut put = |at: usize, bytes: &[u8]| block[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &name[..name.len().min(100)]);
    put(100, format!("{mode:07o}\0").as_bytes());
    put(108, b"0000000\0");
    put(116, b"0000000\0");
    put(124, format!("{size:011o}\0").as_bytes());
    put(136, b"00000000000\0");
    put(156, &[kind]);
    put(157, &link[..link.len().min(100)]);
    put(257, b"ustar\x0000");
    sum(&mut block);
    block
}

/// Puts the right checksum into a header.
pub(crate) fn sum(block: &mut [u8; 512]) {
    block[148..156].fill(b' ');
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
}

/// A tar file in the making.
#[derive(Debug, Default, Clone)]
pub(crate) struct Tar(pub(crate) Vec<u8>);

impl Tar {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Any entry at all.
    pub(crate) fn entry(mut self, name: &str, kind: u8, mode: u32, link: &str, contents: &[u8]) -> Self {
        self.0.extend(header(name.as_bytes(), kind, mode, link.as_bytes(), contents.len() as u64));
        self.contents(contents)
    }

    /// Contents, padded.
    pub(crate) fn contents(mut self, contents: &[u8]) -> Self {
        self.0.extend(contents);
        self.0.resize(self.0.len().next_multiple_of(512), 0);
        self
    }

    pub(crate) fn file(self, name: &str, contents: &str) -> Self {
        self.entry(name, b'0', 0o644, "", contents.as_bytes())
    }

    pub(crate) fn directory(self, name: &str) -> Self {
        self.entry(name, b'5', 0o755, "", b"")
    }

    pub(crate) fn symlink(self, name: &str, target: &str) -> Self {
        self.entry(name, b'2', 0o777, target, b"")
    }

    pub(crate) fn hard_link(self, name: &str, target: &str) -> Self {
        self.entry(name, b'1', 0o644, target, b"")
    }

    /// An extended header for the next entry.
    pub(crate) fn pax(self, key: &str, value: &str) -> Self {
        self.pax_records(&[(key, value)])
    }

    /// The same, with several records.
    pub(crate) fn pax_records(self, records: &[(&str, &str)]) -> Self {
        let mut contents = String::new();
        for (key, value) in records {
            let rest = format!(" {key}={value}\n");
            let mut length = rest.len();
            while length.to_string().len() + rest.len() != length {
                length = length.to_string().len() + rest.len();
            }
            contents += &length.to_string();
            contents += &rest;
        }
        self.entry("pax", b'x', 0o644, "", contents.as_bytes())
    }

    /// GNU's header with a long name (`L`) or a long target (`K`) for the next entry.
    pub(crate) fn gnu_long(mut self, kind: u8, name: &str) -> Self {
        let mut block = header(b"././@LongLink", kind, 0o644, b"", name.len() as u64 + 1);
        block[257..265].copy_from_slice(b"ustar  \0");
        sum(&mut block);
        self.0.extend(block);
        self.contents(format!("{name}\0").as_bytes())
    }

    /// Ends the archive.
    pub(crate) fn end(mut self) -> Vec<u8> {
        self.0.extend([0; 1024]);
        self.0
    }

    /// Ends the archive and compresses it.
    pub(crate) fn gzip(self) -> Vec<u8> {
        gzip(&self.end())
    }
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}
