//! A table whose columns are the values of one axis and whose lines are the values of the others.

use std::fmt::Write;

use crate::design::Shown;
use kingsnake_text::Escaped;

/// The axis across: the one in colour, or else the last.
pub fn across(shown: &Shown) -> usize {
    let drawn = shown.figure.as_ref();
    drawn.map_or(shown.axes.len() - 1, |drawn| drawn.series)
}

/// Each line's names, and the points along it.
pub fn lines(shown: &Shown) -> Vec<(String, Vec<usize>)> {
    let across = across(shown);
    super::combinations(shown)
        .filter(|(at, _)| at[across] == 0)
        .map(|(mut at, _)| {
            let name = line_name(shown, &at, Some(across));
            let along = 0..shown.axes[across].values.len();
            let points = along.map(|value| {
                at[across] = value;
                shown.point(&at)
            });
            let points = points.collect();
            (name, points)
        })
        .collect()
}

/// The values of the axes in a few words, without one of them and without those that do not vary.
pub fn line_name(shown: &Shown, at: &[usize], but: Option<usize>) -> String {
    let varies = |axis: &usize| shown.axes[*axis].values.len() > 1 || *axis == 0;
    (0..at.len())
        .filter(|axis| Some(*axis) != but)
        .filter(varies)
        .map(|axis| shown.axes[axis].values[at[axis]].name.as_str())
        .collect::<Vec<_>>()
        .join(", ")
}

/// Opens a table that scrolls sideways.
pub fn open(out: &mut String, caption: &str, columns: &[String]) {
    let _ = write!(
        out,
        r#"<div class="wide" tabindex="0" role="region" aria-label="{caption}"><table class="rounds matrix"><caption>{caption}</caption><thead><tr><th></th>"#,
        caption = Escaped(caption)
    );
    for column in columns {
        let _ = write!(out, r#"<th scope="col">{}</th>"#, Escaped(column));
    }
    out.push_str("</tr></thead><tbody>");
}

/// One line; what is in the cells is markup already.
pub fn line(out: &mut String, name: &str, cells: &[String]) {
    let _ = write!(out, r#"<tr><th scope="row">{}</th>"#, Escaped(name));
    for cell in cells {
        let _ = write!(out, "<td>{cell}</td>");
    }
    out.push_str("</tr>");
}

/// Closes it.
pub fn close(out: &mut String) {
    out.push_str("</tbody></table></div>\n");
}
