//! A small SVG writer: a frame with a heading, a legend that stands above the data and so never hides it, and marks.
//!
//! Colours are written as attributes, for print; the page restyles the classes for the dark.

use std::fmt::Write;

use super::FigureLabels;
use super::scale::{Linear, LogScale, time};
use crate::recipe::Measure;
use kingsnake_text::Escaped;

/// The width of every figure.
pub const WIDTH: f64 = 760.0;
/// Left and right end of the data.
pub const LEFT: f64 = 66.0;
/// See [`LEFT`].
pub const RIGHT: f64 = WIDTH - 18.0;
const LINE: f64 = 20.0;

/// Okabe and Ito's colours without the yellow, which is too faint on white; black last.
const COLORS: [&str; 7] = [
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#333333",
];
const DASHES: [&str; 3] = ["", "7 3", "2 3"];

/// A number on an axis: 20,000 is 20 k.
fn counted(number: f64) -> String {
    match number {
        it if it >= 1e6 => format!("{} M", it / 1e6),
        it if it >= 1e4 => format!("{} k", it / 1e3),
        it => format!("{it}"),
    }
}

/// The look of a series.
#[derive(Clone, Copy, Debug)]
pub struct SeriesLook {
    /// The class for the page.
    pub class: usize,
    /// The colour.
    pub color: &'static str,
    /// The dashes of a line; empty for none.
    pub dashes: &'static str,
    mark: usize,
}

/// The look of a series by its number.
pub fn look(series: usize) -> SeriesLook {
    let class = series % COLORS.len();
    SeriesLook {
        class,
        color: COLORS[class],
        dashes: DASHES[series / COLORS.len() % DASHES.len()],
        mark: series % 6,
    }
}

/// What stands before a legend's words.
pub enum Swatch {
    /// A filled box.
    Box(SeriesLook),
    /// A line with a mark.
    Line(SeriesLook),
    /// The hatched box.
    Hatched,
    /// The dashed line of the limit.
    Limit,
    /// A mark that is not filled.
    Hollow,
}

/// Where a text stands from its point.
#[derive(Clone, Copy)]
pub enum Anchor {
    /// To the right.
    Start,
    /// Around it.
    Middle,
    /// To the left.
    End,
}

/// A picture being drawn.
pub struct Canvas {
    out: String,
    id: String,
    title: String,
    height: f64,
    /// Where the data may begin, below heading and legend.
    pub top: f64,
}

impl Canvas {
    /// An empty picture.
    pub fn new(labels: &FigureLabels<'_>) -> Canvas {
        Canvas {
            out: String::new(),
            id: labels.id.to_owned(),
            title: labels.title.to_owned(),
            height: 0.0,
            top: 44.0,
        }
    }

    /// The legend, in as many lines as it takes.
    pub fn legend(&mut self, entries: &[(Swatch, String)]) {
        let mut x = 18.0;
        let mut y = self.top + 2.0;
        for (swatch, words) in entries {
            let width = 30.0 + width(words, 12.0) + 18.0;
            if x + width > WIDTH && x > 18.0 {
                x = 18.0;
                y += LINE;
            }
            self.swatch(swatch, x, y - 4.0);
            self.text(x + 30.0, y, 12.0, Anchor::Start, "ink", words);
            x += width;
        }
        self.top = y + 30.0;
    }

    fn swatch(&mut self, swatch: &Swatch, x: f64, y: f64) {
        match swatch {
            Swatch::Box(look) => self.bar(*look, x + 4.0, y - 5.5, 18.0, 11.0),
            Swatch::Hatched => self.hatched(None, x + 4.0, y - 5.5, 18.0, 11.0),
            Swatch::Line(look) => {
                self.path(*look, &format!("M{x:.1} {y:.1}h24"));
                self.mark(*look, x + 12.0, y, true);
            }
            Swatch::Limit => self.limit_line(x, x + 24.0, y),
            Swatch::Hollow => self.mark(look(6), x + 12.0, y, false),
        }
    }

    /// The axis with its grid: names at the left, its label above.
    pub fn log_axis(&mut self, scale: &LogScale, label: &str, measure: Measure) {
        self.text(18.0, self.top - 10.0, 11.5, Anchor::Start, "soft", label);
        for tick in scale.ticks(|at| measure.number(at)) {
            self.grid_line(scale.place(tick.at), tick.name.as_deref());
        }
    }

    /// The same for plain numbers.
    pub fn count_axis(&mut self, scale: &LogScale, label: &str) {
        self.text(18.0, self.top - 10.0, 11.5, Anchor::Start, "soft", label);
        for tick in scale.ticks(counted) {
            self.grid_line(scale.place(tick.at), tick.name.as_deref());
        }
    }

    /// The same on a linear scale.
    pub fn linear_time_axis(&mut self, scale: &Linear, label: &str) {
        self.text(18.0, self.top - 10.0, 11.5, Anchor::Start, "soft", label);
        for seconds in scale.ticks() {
            let name = if seconds > 0.0 {
                time(seconds)
            } else {
                "0".to_owned()
            };
            self.grid_line(scale.place(seconds), Some(&name));
        }
    }

    /// From 0 to 100 %.
    pub fn share_axis(&mut self, scale: &Linear, label: &str) {
        self.text(18.0, self.top - 10.0, 11.5, Anchor::Start, "soft", label);
        for percent in [0.0, 20.0, 40.0, 60.0, 80.0, 100.0] {
            let name = format!("{percent:.0} %");
            self.grid_line(scale.place(percent), Some(&name));
        }
    }

    fn grid_line(&mut self, y: f64, name: Option<&str>) {
        let (class, color) = if name.is_some() {
            ("grid", "#d3d9e1")
        } else {
            ("grid faint", "#eef1f5")
        };
        let _ = write!(
            self.out,
            r#"<path class="{class}" stroke="{color}" fill="none" d="M{LEFT:.1} {y:.1}H{RIGHT:.1}"/>"#
        );
        if let Some(name) = name {
            self.text(LEFT - 8.0, y + 4.0, 12.0, Anchor::End, "ink", name);
        }
    }

    /// The line below the data.
    pub fn base_line(&mut self, y: f64) {
        let _ = write!(
            self.out,
            r##"<path class="axis" stroke="#566273" fill="none" d="M{LEFT:.1} {y:.1}H{RIGHT:.1}"/>"##
        );
    }

    /// A small tick below the base line.
    pub fn tick(&mut self, x: f64, y: f64) {
        let _ = write!(
            self.out,
            r##"<path class="axis" stroke="#566273" fill="none" d="M{x:.1} {y:.1}v5"/>"##
        );
    }

    /// The dashed line at the time limit.
    pub fn limit_line(&mut self, from: f64, to: f64, y: f64) {
        let _ = write!(
            self.out,
            r##"<path class="limit" stroke="#b3261e" stroke-width="1.3" stroke-dasharray="6 4" fill="none" d="M{from:.1} {y:.1}H{to:.1}"/>"##
        );
    }

    /// A filled box; a pale one where the colours begin again.
    pub fn bar(&mut self, look: SeriesLook, x: f64, y: f64, width: f64, height: f64) {
        let pale = if look.dashes.is_empty() {
            ""
        } else {
            r#" fill-opacity="0.35""#
        };
        let _ = write!(
            self.out,
            r#"<rect class="fill line k{}" fill="{color}" stroke="{color}"{pale} x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}"/>"#,
            look.class,
            color = look.color
        );
    }

    /// A filled box without an outline, which would make a thin one look thicker.
    pub fn piece(&mut self, look: SeriesLook, x: f64, y: f64, width: f64, height: f64) {
        let _ = write!(
            self.out,
            r#"<rect class="fill k{}" fill="{}" x="{x:.1}" y="{y:.2}" width="{width:.1}" height="{height:.2}"/>"#,
            look.class, look.color
        );
    }

    /// A hatched box in a series's colour, or in grey.
    pub fn hatched(&mut self, of: Option<SeriesLook>, x: f64, y: f64, width: f64, height: f64) {
        let look = of.unwrap_or(look(6));
        let _ = write!(
            self.out,
            r#"<rect class="line k{class}" fill="url(#{id}-hatch-{class})" stroke="{color}" x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}"/>"#,
            class = look.class,
            color = look.color,
            id = self.id,
        );
    }

    /// A line along a path.
    pub fn path(&mut self, look: SeriesLook, d: &str) {
        self.dashed(look, d, look.dashes);
    }

    /// A line along a path, with dashes of its own.
    pub fn dashed(&mut self, look: SeriesLook, d: &str, dashes: &str) {
        let dashes = if dashes.is_empty() {
            String::new()
        } else {
            format!(r#" stroke-dasharray="{dashes}""#)
        };
        let _ = write!(
            self.out,
            r#"<path class="line k{}" stroke="{}" stroke-width="1.8" stroke-linejoin="round" fill="none"{dashes} d="{d}"/>"#,
            look.class, look.color
        );
    }

    /// A faint area, for a spread.
    pub fn area(&mut self, look: SeriesLook, d: &str) {
        let _ = write!(
            self.out,
            r#"<path class="fill k{}" fill="{}" fill-opacity="0.16" d="{d}"/>"#,
            look.class, look.color
        );
    }

    /// From the shortest to the longest run.
    pub fn whisker(&mut self, x: f64, low: f64, high: f64) {
        let _ = write!(
            self.out,
            r##"<path class="whisker" stroke="#1b2430" stroke-width="1.1" fill="none" d="M{:.1} {low:.1}h8M{x:.1} {low:.1}V{high:.1}M{:.1} {high:.1}h8"/>"##,
            x - 4.0,
            x - 4.0
        );
    }

    /// A series's mark, filled or hollow.
    pub fn mark(&mut self, look: SeriesLook, x: f64, y: f64, filled: bool) {
        let r = 4.2;
        let d = match look.mark {
            0 => format!(
                "M{:.1} {y:.1}a{r} {r} 0 1 0 {:.1} 0a{r} {r} 0 1 0 {:.1} 0z",
                x - r,
                2.0 * r,
                -2.0 * r
            ),
            1 => format!("M{:.1} {:.1}h7.4v7.4h-7.4z", x - 3.7, y - 3.7),
            2 => format!("M{x:.1} {:.1}l4.8 8.4h-9.6z", y - 5.2),
            3 => format!("M{x:.1} {:.1}l5.2 5.2l-5.2 5.2l-5.2 -5.2z", y - 5.2),
            4 => format!("M{x:.1} {:.1}l4.8 -8.4h-9.6z", y + 5.2),
            _ => format!("M{x:.1} {y:.1}l4.4 -4.4v8.8zM{x:.1} {y:.1}l-4.4 -4.4v8.8z"),
        };
        if filled {
            let _ = write!(
                self.out,
                r#"<path class="fill k{}" fill="{}" d="{d}"/>"#,
                look.class, look.color
            );
        } else {
            let _ = write!(
                self.out,
                r##"<path class="line hollow k{}" fill="#ffffff" stroke="{}" stroke-width="1.6" d="{d}"/>"##,
                look.class, look.color
            );
        }
    }

    /// Words. The class is `ink` or `soft`.
    pub fn text(&mut self, x: f64, y: f64, size: f64, anchor: Anchor, class: &str, words: &str) {
        self.turned(x, y, size, anchor, class, words, false);
    }

    /// Words that stand over the grid, and clear it around them.
    pub fn over_grid(&mut self, x: f64, y: f64, size: f64, words: &str) {
        self.turned(x, y, size, Anchor::Middle, "ink halo", words, false);
    }

    /// Words that run upwards.
    pub fn upward(&mut self, x: f64, y: f64, size: f64, words: &str) {
        self.turned(x, y, size, Anchor::Start, "ink halo", words, true);
    }

    #[allow(clippy::too_many_arguments)] // All of them are of one text.
    fn turned(
        &mut self,
        x: f64,
        y: f64,
        size: f64,
        anchor: Anchor,
        class: &str,
        words: &str,
        up: bool,
    ) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let color = if class == "soft" {
            "#566273"
        } else {
            "#1b2430"
        };
        let halo = if class.ends_with("halo") {
            r##" stroke="#ffffff" stroke-width="3" stroke-linejoin="round" paint-order="stroke""##
        } else {
            ""
        };
        let turn = if up {
            format!(r#" transform="rotate(-90 {x:.1} {y:.1})""#)
        } else {
            String::new()
        };
        let _ = write!(
            self.out,
            r#"<text class="{class}" fill="{color}" font-size="{size}" text-anchor="{anchor}" x="{x:.1}" y="{y:.1}"{halo}{turn}>{}</text>"#,
            Escaped(words)
        );
    }

    /// The whole picture, with what runs along it named below its base line.
    pub fn finish_below(mut self, bottom: f64, x_label: &str) -> String {
        let middle = f64::midpoint(LEFT, RIGHT);
        self.text(middle, bottom + 40.0, 12.0, Anchor::Middle, "soft", x_label);
        self.height = (bottom + 54.0).ceil();
        self.finish()
    }

    fn finish(mut self) -> String {
        let title = std::mem::take(&mut self.title);
        let body = std::mem::take(&mut self.out);
        let mut size = 15.0_f64;
        while width(&title, size) * 1.06 > WIDTH - 36.0 && size > 9.0 {
            size -= 0.5;
        }
        let _ = write!(
            self.out,
            r##"<text class="ink" fill="#1b2430" font-size="{size}" font-weight="bold" x="18" y="24">{}</text>"##,
            Escaped(&title),
        );
        let mut hatches = String::new();
        for (class, color) in COLORS.iter().enumerate() {
            let _ = write!(
                hatches,
                r##"<pattern id="{id}-hatch-{class}" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect class="paper" width="6" height="6" fill="#ffffff"/><path class="line k{class}" stroke="{color}" stroke-width="2.2" d="M1.5 0v6"/></pattern>"##,
                id = self.id
            );
        }
        format!(
            r##"<svg xmlns="http://www.w3.org/2000/svg" class="plot" role="img" aria-label="{label}" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" font-family="DejaVu Sans, Verdana, Segoe UI, Helvetica, sans-serif"><defs>{hatches}</defs><rect class="paper" width="{WIDTH}" height="{height}" fill="#ffffff"/>{body}{heading}</svg>
"##,
            label = Escaped(&title),
            height = self.height,
            heading = self.out,
        )
    }
}

/// The legend of boxes, one for each name.
pub fn boxes(names: &[String]) -> Vec<(Swatch, String)> {
    let named = names.iter().enumerate();
    named
        .map(|(at, name)| (Swatch::Box(look(at)), name.clone()))
        .collect()
}

/// About how wide a text is in `DejaVu` Sans, the widest of the fonts that are asked for.
pub fn width(text: &str, size: f64) -> f64 {
    let letter = |letter: char| match letter {
        'i' | 'j' | 'l' | '\'' => 0.28,
        '.' | ',' | ' ' | ':' | '/' | '|' => 0.34,
        't' | 'f' | 'r' | '-' | '(' | ')' => 0.41,
        's' | 'c' | 'z' => 0.55,
        'w' | 'M' | 'O' | 'Q' | '>' | '<' | '×' => 0.84,
        'm' | 'W' | '%' | '→' | '–' => 1.0,
        'A'..='Z' => 0.71,
        _ => 0.64,
    };
    text.chars().map(letter).sum::<f64>() * size
}
