//! Logs: one subscriber for the process, on standard error.

use std::io::IsTerminal;
use std::str::FromStr;

use tracing_subscriber::EnvFilter;

/// How a log line looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// One JSON object a line, fields at the top level.
    Json,
    /// For people; coloured when standard error is a terminal.
    Text,
}

impl Format {
    /// The word that selects this format.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Text => "text",
        }
    }
}

/// Why logging could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum LogsError {
    /// The format is neither of the two words.
    #[error("the log format must be json or text")]
    Format,
    /// The filter is not a list of directives.
    #[error("the log filter is not a level (error, warn, info, debug, trace) or a list such as info,hyper=debug")]
    Filter(#[source] tracing_subscriber::filter::ParseError),
    /// Somebody installed a subscriber before us.
    #[error("logging was set up twice in this process")]
    Twice(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl FromStr for Format {
    type Err = LogsError;

    fn from_str(word: &str) -> Result<Self, LogsError> {
        match word {
            "json" => Ok(Self::Json),
            "text" => Ok(Self::Text),
            _ => Err(LogsError::Format),
        }
    }
}

/// Installs the process's subscriber. `filter` is a level or a comma-separated list of `target=level`.
pub fn init(format: Format, filter: &str) -> Result<(), LogsError> {
    let filter = EnvFilter::try_new(filter).map_err(LogsError::Filter)?;
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match format {
        Format::Json => lines.json().flatten_event(true).try_init(),
        Format::Text => lines.with_ansi(std::io::stderr().is_terminal()).try_init(),
    }
    .map_err(LogsError::Twice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_is_one_of_two_words() {
        assert_eq!("json".parse::<Format>().unwrap(), Format::Json);
        assert_eq!("text".parse::<Format>().unwrap(), Format::Text);
        assert!(matches!("JSON".parse::<Format>(), Err(LogsError::Format)));
    }

    #[test]
    fn a_bad_filter_is_an_error_and_not_a_silent_default() {
        assert!(matches!(init(Format::Text, "info,=,="), Err(LogsError::Filter(_))));
    }
}
