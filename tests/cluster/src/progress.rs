//! What a person who waits gets to see: a bar on a terminal, a line now and then anywhere else. All on stderr.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

/// Where progress is shown. Cheap to clone; clones draw beside each other.
#[derive(Debug, Clone)]
pub struct Progress(Shown);

#[derive(Debug, Clone)]
enum Shown {
    Bars(MultiProgress),
    Lines,
    Nowhere,
}

impl Default for Progress {
    fn default() -> Self {
        Self::new()
    }
}

impl Progress {
    /// Bars if stderr is a terminal, lines if not.
    #[must_use]
    pub fn new() -> Self {
        Self(if std::io::stderr().is_terminal() { Shown::Bars(MultiProgress::new()) } else { Shown::Lines })
    }

    /// Shows nothing.
    #[must_use]
    pub fn silent() -> Self {
        Self(Shown::Nowhere)
    }

    /// Shows a line that stays.
    pub fn say(&self, line: &str) {
        match &self.0 {
            // Above the bars, so that they do not tear it.
            Shown::Bars(bars) => bars.suspend(|| eprintln!("{line}")),
            Shown::Lines => eprintln!("{line}"),
            Shown::Nowhere => {}
        }
    }

    /// Shows that the task called `name` has begun. It is shown until [`Task::done`] or until the task is dropped.
    #[must_use]
    pub fn task(&self, name: &str) -> Task {
        let bar = match &self.0 {
            Shown::Bars(bars) => {
                let bar = bars.add(ProgressBar::no_length());
                bar.set_style(style("{spinner} {prefix}  {elapsed}  {wide_msg}"));
                bar.enable_steady_tick(Duration::from_millis(120));
                bar
            }
            Shown::Lines | Shown::Nowhere => ProgressBar::hidden(),
        };
        bar.set_prefix(name.to_owned());
        Task { progress: self.clone(), bar, name: name.to_owned(), started: Instant::now(), total: 0, seen: 0 }
    }
}

/// The template, or indicatif's own look if it should ever stop understanding ours: looks are no reason to fail.
fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("━╸ ")
}

/// Something that takes a while and is being shown.
#[derive(Debug)]
pub struct Task {
    progress: Progress,
    bar: ProgressBar,
    name: String,
    started: Instant,
    total: u64,
    seen: u64,
}

impl Task {
    /// Says of how many steps the task will consist, as soon as that is known.
    pub fn total(&mut self, steps: u64) {
        self.total = steps;
        self.bar.set_length(steps);
        self.bar.set_style(style("{spinner} {prefix}  {bar:30} {pos}/{len}  {elapsed}  {wide_msg}"));
    }

    /// Says what is being done, without a step.
    pub fn doing(&self, what: &str) {
        self.bar.set_message(what.to_owned());
    }

    /// One step, of which `what` is being done now.
    pub fn step(&mut self, what: &str) {
        let quarter = |seen: u64| (seen * 4).checked_div(self.total).unwrap_or_default();
        let passed = quarter(self.seen) < quarter(self.seen + 1);
        self.seen += 1;
        self.bar.inc(1);
        self.doing(what);
        // Where there is no bar, a quarter is rare enough not to fill a log and often enough to show life.
        if passed && self.seen < self.total && matches!(self.progress.0, Shown::Lines) {
            eprintln!("{}: {} of {}, {}", self.name, self.seen, self.total, seconds(self.started.elapsed()));
        }
    }

    /// Ends the task with a line that stays: its name, `how` it went, and what it took.
    pub fn done(self, how: &str) {
        self.bar.finish_and_clear();
        self.progress.say(&format!("{} {how} ({})", self.name, seconds(self.started.elapsed())));
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// A duration as people say it: `8.1 s`, `6 min 39 s`.
#[must_use]
pub fn seconds(duration: Duration) -> String {
    match duration.as_secs() {
        0..60 => format!("{:.1} s", duration.as_secs_f64()),
        whole => format!("{} min {} s", whole / 60, whole % 60),
    }
}

/// A duration that nobody measured just now: `50 s`, `7 min`.
#[must_use]
pub fn about(duration: Duration) -> String {
    match duration.as_secs() {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds => format!("{} min", (seconds + 30) / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_said_in_seconds_below_a_minute_and_in_minutes_above() {
        assert_eq!(seconds(Duration::from_millis(8_120)), "8.1 s");
        assert_eq!(seconds(Duration::from_secs(399)), "6 min 39 s");
    }

    #[test]
    fn an_estimate_has_no_more_digits_than_it_deserves() {
        assert_eq!(about(Duration::from_secs(50)), "50 s");
        assert_eq!(about(Duration::from_secs(89)), "1 min");
        assert_eq!(about(Duration::from_secs(399)), "7 min");
    }

    #[test]
    fn the_templates_are_ones_that_indicatif_understands() {
        for template in ["{spinner} {prefix}  {elapsed}  {wide_msg}", "{bar:30} {pos}/{len}"] {
            assert!(ProgressStyle::with_template(template).is_ok(), "{template}");
        }
    }

    #[test]
    fn more_steps_than_were_announced_do_no_harm() {
        let mut task = Progress::silent().task("task");
        task.step("before the total is known");
        task.total(1);
        task.step("one more");
        task.done("done");
    }
}
