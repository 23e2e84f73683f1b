//! Scripts that come with the program: one per anomaly of the literature, each a file of `classic`.

/// A script that comes with the program.
#[derive(Clone, Copy)]
pub struct ClassicScript {
    /// The name, as typed.
    pub name: &'static str,
    /// The file.
    pub text: &'static str,
}

macro_rules! classic {
    ($($name:literal),* $(,)?) => {
        &[$(ClassicScript { name: $name, text: include_str!(concat!("classic/", $name, ".script")) }),*]
    };
}

/// All of them, from the weakest level that forbids one to the strongest.
pub const SCRIPTS: &[ClassicScript] = classic![
    "g0",
    "g1a",
    "g1b",
    "g1c",
    "otv",
    "pmp",
    "g-single",
    "p4",
    "g2-item",
    "g2",
    "read-only",
];

impl ClassicScript {
    /// What it shows, in a line.
    pub fn about(&self) -> &'static str {
        self.word("about ")
    }

    /// The weakest level that forbids what it shows.
    pub fn breaks(&self) -> &'static str {
        self.word("breaks ")
    }

    fn word(&self, word: &str) -> &'static str {
        let mut lines = self.text.lines();
        lines.find_map(|it| it.strip_prefix(word)).unwrap_or("")
    }
}
