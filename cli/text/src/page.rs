//! The frame of every page: self-contained, light and dark, readable on a phone and on paper.

use crate::Escaped;

/// The look of every page.
const STYLE: &str = include_str!("page.css");

/// A whole page around a body that is HTML already; `mood` colours its head as that verdict would.
pub fn page(title: &str, more_style: &str, mood: &str, body: &str) -> String {
    format!(
        r#"<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>{STYLE}{more_style}</style>
</head>
<body class="{mood}">
<main>
{body}</main>
<footer>kingsnake {version}</footer>
</body>
</html>
"#,
        title = Escaped(title),
        version = env!("CARGO_PKG_VERSION"),
    )
}
