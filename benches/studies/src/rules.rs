//! The command line's own rules, which the words of a study file must follow. The command line implements them.

/// Whether the program takes a command line.
pub trait Rules {
    /// Asks, for a line that begins with `check` or `generate`. A check that is well formed may still be of a level that
    /// its back end does not decide; then the answer says why.
    fn accepts(&self, line: &[String]) -> Result<Option<String>, RuleRefusal>;
}

/// Why a line is not taken.
#[derive(Clone, Debug)]
pub struct RuleRefusal {
    /// In words.
    pub words: String,
    /// The arguments that the broken rule names, the most telling first.
    pub arguments: Vec<String>,
}
