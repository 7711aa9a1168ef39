//! Builds an image from a Containerfile, so that it is the same one that `buildah` or `docker build` makes.
//!
//! Ours need no base image and run nothing while they are built. So this knows `FROM scratch` and the
//! [instructions](https://docs.docker.com/reference/dockerfile/) that only describe: `COPY` (with `--chmod`), `USER`,
//! `ENTRYPOINT` and `CMD` in their exec form, `ENV`, `LABEL`, `EXPOSE` and `WORKDIR`. Everything else, variables and
//! wildcards included, is an error that names the line: half an image would be worse than none.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::image::{Config, Image, ImageError, Layer, Override, Reference};
use crate::programs::SYSTEM_PATH;

mod parse;
#[cfg(test)]
mod tests;

use parse::{Copy, Instruction};

/// Why a Containerfile gives no image. Each message is whole: it names the cause too.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ContainerfileError {
    /// The file cannot be read.
    #[error("cannot read {}: {cause}", path.display())]
    Read {
        /// The Containerfile, or the folder of its context.
        path: PathBuf,
        /// What the system answered.
        cause: io::Error,
    },
    /// A line cannot be understood or carried out.
    #[error("{}:{line}: {problem}", path.display())]
    Line {
        /// The Containerfile.
        path: PathBuf,
        /// Where the instruction begins, counted from 1.
        line: usize,
        /// What is wrong.
        problem: Problem,
    },
}

/// What is wrong with a line of a Containerfile.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The first instruction is another, or the base is.
    #[error("an image starts with `FROM scratch`, once")]
    Base,
    /// An instruction that this builder does not carry out.
    #[error("{0} is not supported; supported are FROM, COPY, USER, ENTRYPOINT, CMD, ENV, LABEL, EXPOSE and WORKDIR")]
    Instruction(String),
    /// An option of an instruction that this builder does not carry out.
    #[error("option {0} is not supported; COPY takes --chmod with an octal number, nothing else takes any")]
    Option(String),
    /// Arguments of the wrong shape.
    #[error("{instruction} wants {wants}")]
    Shape {
        /// The instruction.
        instruction: &'static str,
        /// The shape.
        wants: &'static str,
    },
    /// A `$` that stands for a variable.
    #[error("variables are not expanded: write the value, or `\\$` for the character")]
    Variable,
    /// A quotation mark without its fellow.
    #[error("a quotation mark is not closed")]
    Quote,
    /// A path of COPY that is not in the context.
    #[error("cannot copy {}: {reason}", path.display())]
    Source {
        /// As the line has it.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// What was asked for makes no image.
    #[error(transparent)]
    Image(#[from] ImageError),
}

/// A Containerfile that was read and understood.
#[derive(Debug)]
pub struct Containerfile {
    path: PathBuf,
    instructions: Vec<(usize, Instruction)>,
}

impl Containerfile {
    /// Reads the file at `path`.
    pub fn read(path: &Path) -> Result<Self, ContainerfileError> {
        let text =
            fs::read_to_string(path).map_err(|cause| ContainerfileError::Read { path: path.to_owned(), cause })?;
        let instructions = parse::instructions(&text).map_err(|(line, problem)| ContainerfileError::Line {
            path: path.to_owned(),
            line,
            problem,
        })?;
        Ok(Self { path: path.to_owned(), instructions })
    }

    /// Carries the instructions out on the folder `context`. File contents are read when the image is written.
    pub fn image(&self, reference: Reference, context: &Path) -> Result<Image, ContainerfileError> {
        let context =
            fs::canonicalize(context).map_err(|cause| ContainerfileError::Read { path: context.to_owned(), cause })?;
        // What other builders set before the first instruction of an image that starts from nothing.
        let config = Config { env: vec![format!("PATH={SYSTEM_PATH}")], ..Config::default() };
        let mut build = Build { context, layer: Layer::new(), config };
        for (line, instruction) in &self.instructions {
            build.run(instruction).map_err(|problem| ContainerfileError::Line {
                path: self.path.clone(),
                line: *line,
                problem,
            })?;
        }
        Ok(Image { reference, layers: vec![build.layer], config: build.config })
    }
}

struct Build {
    context: PathBuf,
    layer: Layer,
    config: Config,
}

impl Build {
    fn run(&mut self, instruction: &Instruction) -> Result<(), Problem> {
        let config = &mut self.config;
        match instruction {
            Instruction::Copy(copy) => self.copy(copy)?,
            Instruction::User(user) => config.user.clone_from(user),
            Instruction::Entrypoint(words) => config.entrypoint.clone_from(words),
            Instruction::Cmd(words) => config.cmd.clone_from(words),
            Instruction::Env(pairs) => {
                for (name, value) in pairs {
                    let set = format!("{name}={value}");
                    let same = |old: &&mut String| old.split('=').next() == Some(name);
                    match config.env.iter_mut().find(same) {
                        Some(old) => *old = set,
                        None => config.env.push(set),
                    }
                }
            }
            Instruction::Label(pairs) => config.labels.extend(pairs.iter().cloned()),
            Instruction::Expose(ports) => config.exposed_ports.extend(ports.iter().cloned()),
            Instruction::Workdir(path) => {
                let path = self.absolute(path);
                if !self.layer.has_directory(&path) {
                    self.layer.directory(&path, 0o755)?;
                }
                self.config.working_dir = path.to_string_lossy().into_owned();
            }
        }
        Ok(())
    }

    fn copy(&mut self, copy: &Copy) -> Result<(), Problem> {
        let replace = Override { mode: copy.mode, ..Override::root_owned() };
        let target = self.absolute(&copy.destination);
        for name in &copy.sources {
            let source = self.in_context(Path::new(name))?;
            let into = copy.destination.ends_with('/') || self.layer.has_directory(&target);
            match source.file_name() {
                // A directory stands for what lies in it.
                _ if source.is_dir() => {
                    if !self.layer.has_directory(&target) {
                        self.layer.directory(&target, 0o755)?;
                    }
                    self.layer.copy_contents(&source, &target, replace)?;
                }
                Some(own_name) if into => {
                    let name = Path::new(name).file_name().unwrap_or(own_name);
                    self.layer.copy(&source, target.join(name), replace)?;
                }
                _ => {
                    self.layer.copy(&source, &target, replace)?;
                }
            }
        }
        Ok(())
    }

    /// The file or folder that a source names, links followed; the context ends where its folder ends.
    fn in_context(&self, name: &Path) -> Result<PathBuf, Problem> {
        let refuse = |reason: String| Problem::Source { path: name.to_owned(), reason };
        let relative = name.strip_prefix("/").unwrap_or(name);
        let source = fs::canonicalize(self.context.join(relative)).map_err(|error| refuse(error.to_string()))?;
        if !source.starts_with(&self.context) {
            return Err(refuse("it lies outside the context".to_owned()));
        }
        Ok(source)
    }

    fn absolute(&self, path: &str) -> PathBuf {
        let start = if self.config.working_dir.is_empty() { "/" } else { &self.config.working_dir };
        // Collected anew, so that `/a/./b/` is `/a/b` in the configuration too.
        Path::new(start).join(path).components().collect()
    }
}
