//! Why there is no report: the one error of this crate, below all of its modules.

use isotherm::registry::SpecError;

/// Why a report cannot be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// The results hold no run.
    #[error("the results hold no run: there is nothing to report; run `isotherm compare` or `isotherm run` first")]
    NoRuns,
    /// Two pictures would be written into one file.
    #[error("figures/{file}: {whose} would be drawn into it, and only the last would be left; {fix}")]
    SamePicture {
        /// Name of the file.
        file: String,
        /// Which pictures these are.
        whose: String,
        /// What to do.
        fix: &'static str,
    },
    /// A structure that JSON cannot hold.
    #[error("a figure or a run cannot be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// An experiment asks for a figure that its runs cannot give.
    #[error(transparent)]
    Figure(#[from] SpecError),
}

impl ReportError {
    /// The pictures of two experiments, or of one, have the same name.
    pub(crate) fn same_picture(file: String, first: &str, second: &str) -> Self {
        let (whose, fix) = if first == second {
            let fix = "give its results once, and each `picture` of its TOML file a name of its own";
            (format!("two pictures of the experiment \"{first}\""), fix)
        } else {
            let fix = "give one of them another name, as `picture` in its TOML file, and sweep that experiment again with --resume";
            (format!("a picture of the experiment \"{first}\" and one of \"{second}\""), fix)
        };
        Self::SamePicture { file, whose, fix }
    }
}
