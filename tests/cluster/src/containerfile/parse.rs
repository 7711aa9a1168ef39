//! From the text of a Containerfile to its instructions.

use super::Problem;

/// One instruction, its words taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Instruction {
    Copy(Copy),
    User(String),
    Entrypoint(Vec<String>),
    Cmd(Vec<String>),
    Env(Vec<(String, String)>),
    Label(Vec<(String, String)>),
    Expose(Vec<String>),
    Workdir(String),
}

/// `COPY [--chmod=MODE] SOURCE... DESTINATION`
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Copy {
    pub(super) sources: Vec<String>,
    pub(super) destination: String,
    pub(super) mode: Option<u32>,
}

/// All instructions after `FROM scratch`, each with the number of its first line; or the line and what is wrong there.
pub(super) fn instructions(text: &str) -> Result<Vec<(usize, Instruction)>, (usize, Problem)> {
    let mut lines = logical_lines(text).into_iter();
    match lines.next() {
        Some((number, line)) => from(&line).map_err(|problem| (number, problem))?,
        None => return Err((1, Problem::Base)),
    }
    lines.map(|(number, line)| instruction(&line).map(|parsed| (number, parsed)).map_err(|p| (number, p))).collect()
}

/// Lines without comments, joined where one ends in a backslash.
fn logical_lines(text: &str) -> Vec<(usize, String)> {
    let mut lines = Vec::new();
    let mut open: Option<(usize, String)> = None;
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        // A comment or an empty line does not end what the line before began.
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (first, mut joined) = open.take().unwrap_or((number, String::new()));
        if let Some(start) = line.strip_suffix('\\') {
            joined.push_str(start);
            open = Some((first, joined));
        } else {
            joined.push_str(line);
            lines.push((first, joined));
        }
    }
    lines.extend(open);
    lines
}

fn keyword(line: &str) -> (String, &str) {
    let (keyword, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    (keyword.to_ascii_uppercase(), rest.trim())
}

fn from(line: &str) -> Result<(), Problem> {
    match keyword(line) {
        (keyword, "scratch") if keyword == "FROM" => Ok(()),
        _ => Err(Problem::Base),
    }
}

fn instruction(line: &str) -> Result<Instruction, Problem> {
    let (keyword, rest) = keyword(line);
    if keyword != "COPY" && rest.starts_with("--") {
        return Err(Problem::Option(first_word(rest)));
    }
    match keyword.as_str() {
        "FROM" => Err(Problem::Base),
        "COPY" => copy(rest).map(Instruction::Copy),
        "USER" => one("USER", "one user, as in `65532:65532`", rest).map(Instruction::User),
        "WORKDIR" => one("WORKDIR", "one path", rest).map(Instruction::Workdir),
        "ENTRYPOINT" => exec_form("ENTRYPOINT", rest).map(Instruction::Entrypoint),
        "CMD" => exec_form("CMD", rest).map(Instruction::Cmd),
        "ENV" => pairs("ENV", rest).map(Instruction::Env),
        "LABEL" => pairs("LABEL", rest).map(Instruction::Label),
        "EXPOSE" => expose(rest).map(Instruction::Expose),
        _ => Err(Problem::Instruction(keyword)),
    }
}

fn copy(rest: &str) -> Result<Copy, Problem> {
    let shape =
        || Problem::Shape { instruction: "COPY", wants: "sources and a destination, which ends in `/` for several" };
    let mut words = words(rest)?;
    let options = words.iter().take_while(|word| word.starts_with("--")).count();
    let mut mode = None;
    for option in words.drain(..options) {
        let octal = option.strip_prefix("--chmod=").and_then(|mode| u32::from_str_radix(mode, 8).ok());
        mode = Some(octal.filter(|mode| *mode <= 0o7777).ok_or(Problem::Option(option))?);
    }
    let destination = words.pop().ok_or_else(shape)?;
    if words.is_empty() || (words.len() > 1 && !destination.ends_with('/')) {
        return Err(shape());
    }
    if words.iter().any(|source| source.starts_with(['[', '<']) || source.contains(['*', '?'])) {
        return Err(Problem::Shape {
            instruction: "COPY",
            wants: "plain paths: no wildcard, JSON form or here-document",
        });
    }
    Ok(Copy { sources: words, destination, mode })
}

fn expose(rest: &str) -> Result<Vec<String>, Problem> {
    let shape = || Problem::Shape { instruction: "EXPOSE", wants: "ports, as in `80`, `443/tcp` or `53/udp`" };
    let ports: Vec<_> = words(rest)?
        .into_iter()
        .map(|word| {
            let (port, protocol) = word.split_once('/').unwrap_or((&word, "tcp"));
            let port: u16 = port.parse().map_err(|_| shape())?;
            matches!(protocol, "tcp" | "udp").then(|| format!("{port}/{protocol}")).ok_or_else(shape)
        })
        .collect::<Result<_, _>>()?;
    if ports.is_empty() { Err(shape()) } else { Ok(ports) }
}

fn one(instruction: &'static str, wants: &'static str, rest: &str) -> Result<String, Problem> {
    <[String; 1]>::try_from(words(rest)?).map(|[word]| word).map_err(|_| Problem::Shape { instruction, wants })
}

fn exec_form(instruction: &'static str, rest: &str) -> Result<Vec<String>, Problem> {
    // The shell form needs a shell in the image, which `scratch` has not.
    serde_json::from_str(rest)
        .map_err(|_| Problem::Shape { instruction, wants: "its exec form, a JSON array of strings" })
}

fn pairs(instruction: &'static str, rest: &str) -> Result<Vec<(String, String)>, Problem> {
    let shape = || Problem::Shape { instruction, wants: "`NAME=value` pairs" };
    let pairs: Vec<_> = words(rest)?
        .into_iter()
        .map(|word| match word.split_once('=') {
            Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
            _ => Err(shape()),
        })
        .collect::<Result<_, _>>()?;
    if pairs.is_empty() { Err(shape()) } else { Ok(pairs) }
}

fn first_word(rest: &str) -> String {
    rest.split_whitespace().next().unwrap_or_default().split('=').next().unwrap_or_default().to_owned()
}

/// Splits at blanks, with the quotation marks and backslashes of a shell.
fn words(text: &str) -> Result<Vec<String>, Problem> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match (quote, character) {
            (None, blank) if blank.is_whitespace() => words.extend(word.take()),
            (None, mark @ ('"' | '\'')) => {
                quote = Some(mark);
                word.get_or_insert_default();
            }
            (Some(open), mark) if mark == open => quote = None,
            (None | Some('"'), '$') => return Err(Problem::Variable),
            (None, '\\') => word.get_or_insert_default().extend(characters.next()),
            // Between double quotes a backslash stands for itself before all but these.
            (Some('"'), '\\') => match characters.next() {
                Some(escaped @ ('"' | '\\' | '$')) => word.get_or_insert_default().push(escaped),
                other => {
                    let word = word.get_or_insert_default();
                    word.push('\\');
                    word.extend(other);
                }
            },
            (_, other) => word.get_or_insert_default().push(other),
        }
    }
    if quote.is_some() {
        return Err(Problem::Quote);
    }
    words.extend(word);
    Ok(words)
}
