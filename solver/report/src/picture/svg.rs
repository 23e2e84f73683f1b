//! Draws a scene as SVG: sessions are lanes, transactions are cards in the order of the cycle, arrows run in the gaps.
//!
//! An arrow to the next card stays between two columns; any other runs below all lanes, on a rail without crossing
//! another arrow. Each card has a column to itself, so no arrow crosses a card, and every gap is as wide as its label.
//! Colours are distinguishable for colour-blind readers, and each has its own dash pattern.

use std::fmt::{self, Write};

use kingsnake_solver::verdict::Moment;

use super::{Arrow, ArrowKind, Card, Panel, Scene};
use kingsnake_text::Escaped;

/// The style of the drawing; it follows the reader's light or dark scheme.
const STYLE: &str = include_str!("picture.css");

const MARGIN: f64 = 16.0;
const LINE: f64 = 17.0;
const LETTER: f64 = 7.25;
const CARD_PAD: f64 = 12.0;
const HEAD: f64 = 26.0;
const LANE_PAD: f64 = 14.0;
/// Room below the cards of a lane for arrows between begins and commits.
const GUTTER: f64 = 26.0;
const TITLE: f64 = 22.0;
const RAIL: f64 = 34.0;
const NEXT_RAIL: f64 = 24.0;
const CORNER: f64 = 12.0;

/// The drawing as a separate document.
pub fn document(scene: &Scene) -> String {
    let drawing = drawing(scene, "ks", true);
    drawing
        .replacen("<defs>", &format!("<style>{STYLE}</style><defs>"), 1)
        .replacen("<svg", r#"<svg xmlns="http://www.w3.org/2000/svg""#, 1)
}

/// The drawing as part of a page, which needs no name space and has its own style and legend.
/// Its ids begin with the unique prefix `ids`.
pub fn inline(scene: &Scene, ids: &str) -> String {
    // In a narrow window it shrinks as long as the text is legible, and then scrolls.
    let drawing = drawing(scene, ids, false);
    let least = 0.7 * scene_width(scene);
    drawing.replacen(
        "<svg",
        &format!(r#"<svg style="min-width:{least:.0}px""#),
        1,
    )
}

fn scene_width(scene: &Scene) -> f64 {
    let rows = rows(scene).into_iter();
    let widths = rows.map(|row| row.iter().map(|it| it.1).sum::<f64>());
    widths.fold(280.0, f64::max)
}

/// A row of panels is no wider than this, unless a single panel is.
const ROW: f64 = 940.0;
/// From this number of panels on, small ones are placed side by side.
const MANY_PANELS: usize = 3;

/// The panels row by row, each with its width.
fn rows(scene: &Scene) -> Vec<Vec<(&Panel, f64)>> {
    let mut rows: Vec<Vec<(&Panel, f64)>> = Vec::new();
    for panel in &scene.panels {
        let width = Place::new(panel, 0.0).width;
        let is_small = |panel: &Panel| panel.cards.len() <= 2;
        match rows.last_mut() {
            Some(row)
                if scene.panels.len() >= MANY_PANELS
                    && is_small(panel)
                    && row.iter().all(|it| is_small(it.0))
                    && row.iter().map(|it| it.1).sum::<f64>() + width <= ROW =>
            {
                row.push((panel, width));
            }
            _ => rows.push(vec![(panel, width)]),
        }
    }
    rows
}

/// What the scene's arrows mean.
pub fn kinds(scene: &Scene) -> Vec<ArrowKind> {
    let arrows = scene.panels.iter().flat_map(|panel| &panel.arrows);
    let mut kinds: Vec<ArrowKind> = arrows.map(|arrow| arrow.kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds
}

fn drawing(scene: &Scene, ids: &str, has_legend: bool) -> String {
    let mut body = String::new();
    let width = scene_width(scene);
    let mut y = MARGIN;
    for row in rows(scene) {
        let (mut x, mut bottom) = (0.0, y);
        let is_alone = row.len() == 1;
        for (panel, panel_width) in row {
            let place = Place::new(panel, y);
            if is_alone {
                let _ = draw_panel(&mut body, panel, &place, width, ids);
            } else {
                let _ = write!(body, r#"<g transform="translate({x:.0} 0)">"#);
                let _ = draw_panel(&mut body, panel, &place, panel_width, ids);
                body.push_str("</g>");
            }
            x += panel_width;
            bottom = place.bottom.max(bottom);
        }
        y = bottom;
    }
    let kinds = kinds(scene);
    if has_legend {
        y = legend(&mut body, scene, &kinds, y, width);
    }
    let height = y + MARGIN / 2.0;
    let mut markers = String::new();
    for kind in &kinds {
        let letters = kind.letters();
        let _ = write!(
            markers,
            r#"<marker id="{ids}-{letters}" class="{letters} tip" viewBox="0 0 10 10" refX="9" refY="5" markerUnits="userSpaceOnUse" markerWidth="11" markerHeight="11" orient="auto"><path d="M0 0.8L10 5L0 9.2z"/></marker>"#
        );
    }
    format!(
        r#"<svg class="ks" role="img" aria-label="The counterexample, as a picture" width="{width:.0}" height="{height:.0}" viewBox="0 0 {width:.0} {height:.0}"><defs>{markers}</defs><rect class="paper" width="100%" height="100%"/>{body}</svg>
"#
    )
}

/// The layout of a panel.
struct Place {
    /// The baseline of the title's first line.
    title_y: f64,
    /// The top and the height of each lane's cards.
    lanes: Vec<(f64, f64)>,
    /// The left side and the width of each card.
    columns: Vec<(f64, f64)>,
    /// The position of the first rail below the lanes.
    rail_y: f64,
    /// For each arrow, the rail that it runs on.
    rails: Vec<Option<usize>>,
    width: f64,
    bottom: f64,
}

impl Place {
    fn new(panel: &Panel, top: f64) -> Self {
        let mut y = top;
        let title_y = y + 18.0;
        if !panel.title.is_empty() {
            y += TITLE * panel.title.len() as f64 + 8.0;
        }
        let mut lanes = Vec::with_capacity(panel.lanes.len());
        for lane in 0..panel.lanes.len() {
            let cards = panel.cards.iter().filter(|card| card.lane == lane);
            let height = cards.map(card_height).fold(0.0, f64::max);
            lanes.push((y + LANE_PAD, height));
            let gutter = if has_moments(panel) { GUTTER } else { 0.0 };
            y += height + gutter + 2.0 * LANE_PAD + 8.0;
        }
        let mut columns = Vec::with_capacity(panel.cards.len());
        // The sessions' names have a column to themselves, which arrows do not cross.
        let names = panel.lanes.iter().map(|name| wide(name) * 0.9);
        let mut x = MARGIN + 2.0 * LANE_PAD + names.fold(0.0, f64::max);
        for (at, card) in panel.cards.iter().enumerate() {
            let width = card_width(card);
            columns.push((x, width));
            x += width + gap_after(panel, at);
        }
        let (left, card_width) = columns[columns.len() - 1];
        let rail_y = y + RAIL - 10.0;
        let rails = rails(panel);
        let n_rails = rails.iter().flatten().max().map_or(0, |&last| last + 1);
        let mut width = left + card_width + LANE_PAD + MARGIN;
        let titles = panel.title.iter().map(|line| wide(line) * 1.1);
        width = width.max(titles.fold(0.0, f64::max) + 2.0 * MARGIN);
        Place {
            title_y,
            lanes,
            columns,
            rail_y,
            rails,
            width: width.ceil(),
            bottom: y + match n_rails {
                0 => 6.0,
                n_rails => RAIL + 14.0 + (n_rails - 1) as f64 * NEXT_RAIL,
            },
        }
    }

    /// A card's left, top, width and height.
    fn card(&self, panel: &Panel, at: usize) -> (f64, f64, f64, f64) {
        let card = &panel.cards[at];
        let (x, width) = self.columns[at];
        let (top, lane_height) = self.lanes[card.lane];
        let height = card_height(card);
        (x, top + (lane_height - height) / 2.0, width, height)
    }

    /// The height at which arrows between begins and commits leave a lane.
    fn gutter_y(&self, lane: usize) -> f64 {
        let (top, height) = self.lanes[lane];
        top + height + GUTTER - 4.0
    }
}

/// Whether begins and commits are drawn.
pub fn speaks_of_moments(scene: &Scene) -> bool {
    scene.panels.iter().any(has_moments)
}

fn has_moments(panel: &Panel) -> bool {
    panel.cards.iter().any(|card| card.moments.is_some())
}

fn card_height(card: &Card) -> f64 {
    let n_lines = card.lines.len() + usize::from(card.n_more > 0);
    let moments = if card.moments.is_some() { 22.0 } else { 0.0 };
    HEAD + n_lines as f64 * LINE + 8.0 + moments
}

fn card_width(card: &Card) -> f64 {
    let title = wide(&card.title) * 1.1 + card.note.map_or(0.0, |note| wide(note) + 10.0);
    let lines = card.lines.iter().map(|line| wide(&line.text));
    let more = if card.n_more > 0 {
        wide(&more(card))
    } else {
        0.0
    };
    let least = card.moments.as_ref().map_or(84.0, |moments| {
        let words = moments.words.iter().map(|word| wide(word) * 0.75);
        (words.sum::<f64>() + 52.0).max(128.0)
    });
    lines.fold(title.max(more), f64::max).max(least) + 2.0 * CARD_PAD
}

fn more(card: &Card) -> String {
    match (card.lines.len(), card.n_more) {
        (0, n) => format!("{n} operations"),
        (_, n) => format!("+ {n} more"),
    }
}

/// The approximate width of a text; East Asian characters count double.
fn wide(text: &str) -> f64 {
    let cells: usize = text
        .chars()
        .map(|letter| if letter >= '\u{2e80}' { 2 } else { 1 })
        .sum();
    cells as f64 * LETTER
}

/// The label of an arrow.
fn label(arrow: &Arrow) -> String {
    match (arrow.kind, arrow.label.as_str()) {
        (ArrowKind::Anomaly, key) => key.to_owned(),
        (kind, "") => kind.letters().to_owned(),
        (kind, key) => format!("{} {key}", kind.letters()),
    }
}

/// Whether an arrow leads neither to the next card nor from one moment to another.
fn is_railed(arrow: &Arrow) -> bool {
    let (from, to) = (arrow.from.0, arrow.to.0);
    to <= from || to > from + 1 && arrow.from.1 == Moment::Whole
}

/// Assigns rails: the shortest arrows are nearest to the lanes, and arrows on one rail share no column.
fn rails(panel: &Panel) -> Vec<Option<usize>> {
    let span = |at: usize| {
        let (from, to) = (panel.arrows[at].from.0, panel.arrows[at].to.0);
        (from.min(to), from.max(to))
    };
    let mut railed: Vec<usize> = (0..panel.arrows.len())
        .filter(|&at| is_railed(&panel.arrows[at]))
        .collect();
    railed.sort_by_key(|&at| (span(at).1 - span(at).0, at));
    let mut rails = vec![None; panel.arrows.len()];
    let mut taken: Vec<Vec<(usize, usize)>> = Vec::new();
    for at in railed {
        let (first, last) = span(at);
        let is_free =
            |rail: &Vec<(usize, usize)>| rail.iter().all(|&(low, high)| high < first || last < low);
        let rail = taken.iter().position(is_free).unwrap_or_else(|| {
            taken.push(Vec::new());
            taken.len() - 1
        });
        taken[rail].push((first, last));
        rails[at] = Some(rail);
    }
    rails
}

/// Where a railed arrow touches the lower edge of a card, as a share of its width, so that such arrows are side by side.
fn share_of_edge(panel: &Panel, card: usize, arrow: &Arrow, leaves: bool) -> f64 {
    let railed = panel.arrows.iter().filter(|it| is_railed(it));
    let ends = railed.flat_map(|it| [(it, true), (it, false)]);
    let of_card = |it: &Arrow, leaves: bool| (if leaves { it.from.0 } else { it.to.0 }) == card;
    let mut ends: Vec<(&Arrow, bool)> = ends.filter(|it| of_card(it.0, it.1)).collect();
    // Sorted by the other end, so that arrows to the left leave at the left.
    ends.sort_by_key(|&(it, leaves)| (if leaves { it.to.0 } else { it.from.0 }, leaves));
    let place = ends
        .iter()
        .position(|it| std::ptr::eq(it.0, arrow) && it.1 == leaves);
    place.map_or(0.5, |place| (place + 1) as f64 / (ends.len() + 1) as f64)
}

/// The room between a card and the next.
fn gap_after(panel: &Panel, at: usize) -> f64 {
    let is_last = at + 1 == panel.cards.len();
    let leads_on = |arrow: &&Arrow| arrow.from.0 == at && arrow.to.0 == at + 1;
    let adjacent = panel.arrows.iter().filter(leads_on);
    let adjacent = adjacent.map(|arrow| gap(arrow, is_last));
    let own = panel.arrows.get(at).map_or(0.0, |it| gap(it, is_last));
    let n_railed = panel.arrows.iter().filter(|it| is_railed(it)).count();
    let least = if n_railed > 1 && !is_last { 28.0 } else { 0.0 };
    adjacent.fold(own.max(least), f64::max)
}

fn gap(arrow: &Arrow, is_last: bool) -> f64 {
    if is_last {
        0.0
    } else {
        (wide(&label(arrow)) + 40.0).max(72.0)
    }
}

fn draw_panel(
    out: &mut String,
    panel: &Panel,
    place: &Place,
    width: f64,
    ids: &str,
) -> fmt::Result {
    for (at, line) in panel.title.iter().enumerate() {
        write!(
            out,
            r#"<text class="title" x="{MARGIN}" y="{:.1}">{}</text>"#,
            place.title_y + at as f64 * TITLE,
            Escaped(line)
        )?;
    }
    for (lane, name) in panel.lanes.iter().enumerate() {
        let (top, height) = place.lanes[lane];
        let gutter = if has_moments(panel) { GUTTER } else { 0.0 };
        write!(
            out,
            r#"<rect class="lane" x="{MARGIN}" y="{:.1}" width="{:.1}" height="{:.1}" rx="10"/><text class="session" x="{:.1}" y="{:.1}">{}</text>"#,
            top - LANE_PAD,
            width - 2.0 * MARGIN,
            height + gutter + 2.0 * LANE_PAD,
            MARGIN + LANE_PAD,
            top + height / 2.0 + 4.0,
            Escaped(name)
        )?;
    }
    for at in 0..panel.cards.len() {
        draw_card(out, panel, place, at)?;
    }
    for at in 0..panel.arrows.len() {
        draw_arrow(out, panel, place, at, ids)?;
    }
    Ok(())
}

fn draw_card(out: &mut String, panel: &Panel, place: &Place, at: usize) -> fmt::Result {
    let card = &panel.cards[at];
    let (x, y, width, height) = place.card(panel, at);
    let class = match (card.is_aborted, card.note) {
        (true, _) => "card aborted",
        (false, Some("again")) => "card again",
        _ => "card",
    };
    write!(
        out,
        r#"<g class="{class}"><rect x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}" rx="9"/><text class="name" x="{:.1}" y="{:.1}">{}"#,
        x + CARD_PAD,
        y + 19.0,
        Escaped(&card.title)
    )?;
    if let Some(note) = card.note {
        write!(out, r#"<tspan class="note" dx="8">{note}</tspan>"#)?;
    }
    out.push_str("</text>");
    let mut baseline = y + HEAD + 12.0;
    for line in &card.lines {
        let class = if line.is_marked { "op marked" } else { "op" };
        write!(
            out,
            r#"<text class="{class}" x="{:.1}" y="{baseline:.1}"><title>{}</title>{}</text>"#,
            x + CARD_PAD,
            Escaped(&line.full),
            Escaped(&line.text)
        )?;
        baseline += LINE;
    }
    if card.n_more > 0 {
        write!(
            out,
            r#"<text class="op" x="{:.1}" y="{baseline:.1}">{}</text>"#,
            x + CARD_PAD,
            more(card)
        )?;
    }
    if let Some(moments) = &card.moments {
        let y = y + height - 15.0;
        let [at_begin, at_commit] = moments
            .is_touched
            .map(|touched| if touched { "moment touched" } else { "moment" });
        let [began, committed] = &moments.words;
        let (begin, commit) = (x + 20.0, x + width - 20.0);
        write!(
            out,
            r#"<path class="life" d="M{begin:.1} {y:.1}H{commit:.1}"/><circle class="{at_begin}" cx="{begin:.1}" cy="{y:.1}" r="4.5"/><circle class="{at_commit}" cx="{commit:.1}" cy="{y:.1}" r="4.5"/><text class="word" x="{:.1}" y="{:.1}">{began}</text><text class="word" text-anchor="end" x="{:.1}" y="{:.1}">{committed}</text>"#,
            begin + 9.0,
            y - 4.0,
            commit - 9.0,
            y - 4.0
        )?;
    }
    out.push_str("</g>");
    Ok(())
}

/// Where an arrow leaves or reaches a card at a moment: a point on its lower edge.
fn port(place: &Place, panel: &Panel, (at, moment): (usize, Moment), leaves: bool) -> (f64, f64) {
    let (x, y, width, height) = place.card(panel, at);
    let shift = if leaves { 4.0 } else { -4.0 };
    match moment {
        Moment::Whole => (x + width / 2.0, y + height),
        Moment::Begin => (x + 20.0 + shift, y + height),
        Moment::Commit => (x + width - 20.0 + shift, y + height),
    }
}

fn draw_arrow(out: &mut String, panel: &Panel, place: &Place, at: usize, ids: &str) -> fmt::Result {
    let arrow = &panel.arrows[at];
    let (from, to) = (arrow.from.0, arrow.to.0);
    let (path, (x, y)) = if let Some(rail) = place.rails[at] {
        below(place, panel, arrow, rail)
    } else if arrow.from.1 == Moment::Whole {
        across(place, panel, from, to)
    } else {
        under(place, panel, arrow)
    };
    let kind = arrow.kind.letters();
    let words = label(arrow);
    let half = wide(&words) / 2.0 + 5.0;
    write!(
        out,
        r#"<g class="{kind}"><title>{}</title><path class="arrow" marker-end="url(#{ids}-{kind})" d="{path}"/><rect class="plate" x="{:.1}" y="{:.1}" width="{:.1}" height="18" rx="5"/><text class="label" text-anchor="middle" x="{x:.1}" y="{:.1}">{}</text></g>"#,
        Escaped(&arrow.full),
        x - half,
        y - 9.0,
        2.0 * half,
        y + 4.2,
        Escaped(&words)
    )
}

/// From one card's right side to the next card's left side.
fn across(place: &Place, panel: &Panel, from: usize, to: usize) -> (String, (f64, f64)) {
    let (x, y, width, height) = place.card(panel, from);
    let (x1, y1) = (x + width, y + height / 2.0);
    let (x2, y, _, height) = place.card(panel, to);
    let y2 = y + height / 2.0;
    let middle = x1.midpoint(x2);
    if (y1 - y2).abs() < 0.5 {
        return (
            format!("M{x1:.1} {y1:.1}H{:.1}", x2 - 1.0),
            (middle, y1 - 13.0),
        );
    }
    let path = format!(
        "M{x1:.1} {y1:.1}C{middle:.1} {y1:.1} {middle:.1} {y2:.1} {:.1} {y2:.1}",
        x2 - 1.0
    );
    (path, (middle, y1.midpoint(y2)))
}

/// From one card's begin or commit to the next card's, below both.
fn under(place: &Place, panel: &Panel, arrow: &Arrow) -> (String, (f64, f64)) {
    let (x1, y1) = port(place, panel, arrow.from, true);
    let (x2, y2) = port(place, panel, arrow.to, false);
    let lanes = [arrow.from.0, arrow.to.0].map(|at| panel.cards[at].lane);
    let [down, up] = lanes.map(|lane| place.gutter_y(lane));
    let (left, width) = place.columns[arrow.from.0];
    let middle = (left + width).midpoint(place.columns[arrow.to.0].0);
    let corners = if lanes[0] == lanes[1] {
        vec![(x1, y1), (x1, down), (x2, down), (x2, y2 + 1.0)]
    } else {
        vec![
            (x1, y1),
            (x1, down),
            (middle, down),
            (middle, up),
            (x2, up),
            (x2, y2 + 1.0),
        ]
    };
    let y = if lanes[0] == lanes[1] {
        down - 13.0
    } else {
        down.midpoint(up)
    };
    (rounded(&corners), (middle, y))
}

/// To a card that is not the next, on a rail below all lanes.
fn below(place: &Place, panel: &Panel, arrow: &Arrow, rail: usize) -> (String, (f64, f64)) {
    let (mut x1, y1) = port(place, panel, arrow.from, true);
    let (mut x2, y2) = port(place, panel, arrow.to, false);
    if arrow.from.0 == arrow.to.0 && arrow.from.1 == arrow.to.1 {
        (x1, x2) = (x1 + 24.0, x2 - 24.0);
    } else if arrow.from.1 == Moment::Whole {
        let side_by_side = |at: usize, leaves: bool| {
            let (x, _, width, _) = place.card(panel, at);
            x + width * share_of_edge(panel, at, arrow, leaves)
        };
        x1 = side_by_side(arrow.from.0, true);
        x2 = side_by_side(arrow.to.0, false);
    }
    let rail = place.rail_y + rail as f64 * NEXT_RAIL;
    let path = rounded(&[(x1, y1), (x1, rail), (x2, rail), (x2, y2 + 1.0)]);
    (path, (x1.midpoint(x2), rail))
}

/// A path through corners that are rounded as far as there is room.
fn rounded(corners: &[(f64, f64)]) -> String {
    let mut path = format!("M{:.1} {:.1}", corners[0].0, corners[0].1);
    for leg in corners.windows(3) {
        let [before, corner, after] = [leg[0], leg[1], leg[2]];
        let radius = CORNER
            .min(distance(before, corner) / 2.0)
            .min(distance(corner, after) / 2.0);
        let enter = toward(corner, before, radius);
        let leave = toward(corner, after, radius);
        let _ = write!(
            path,
            "L{:.1} {:.1}Q{:.1} {:.1} {:.1} {:.1}",
            enter.0, enter.1, corner.0, corner.1, leave.0, leave.1
        );
    }
    let last = corners[corners.len() - 1];
    let _ = write!(path, "L{:.1} {:.1}", last.0, last.1);
    path
}

fn distance(a: (f64, f64), b: (f64, f64)) -> f64 {
    (a.0 - b.0).hypot(a.1 - b.1)
}

fn toward(from: (f64, f64), to: (f64, f64), length: f64) -> (f64, f64) {
    let whole = distance(from, to).max(f64::EPSILON);
    (
        from.0 + (to.0 - from.0) / whole * length,
        from.1 + (to.1 - from.1) / whole * length,
    )
}

/// Draws the legend and the number of omitted panels. Returns its lower end.
fn legend(out: &mut String, scene: &Scene, kinds: &[ArrowKind], top: f64, width: f64) -> f64 {
    let hidden = scene.hidden;
    let in_moments = speaks_of_moments(scene);
    let (mut x, mut y) = (MARGIN, top + 16.0);
    for kind in kinds {
        let letters = kind.letters();
        let words = kind.meaning(in_moments);
        let room = 36.0 + wide(letters) + wide(words) * 0.9 + 28.0;
        if x > MARGIN && x + room > width {
            (x, y) = (MARGIN, y + 20.0);
        }
        let shown = if *kind == ArrowKind::Anomaly {
            ""
        } else {
            letters
        };
        let _ = write!(
            out,
            r#"<g class="{letters}"><path class="arrow" marker-end="url(#ks-{letters})" d="M{x:.1} {:.1}h28"/><text class="legend" x="{:.1}" y="{y:.1}"><tspan class="label">{shown}</tspan> {words}</text></g>"#,
            y - 4.0,
            x + 36.0
        );
        x += room;
    }
    if hidden > 0 {
        y += 22.0;
        let _ = write!(
            out,
            r#"<text class="legend" x="{MARGIN}" y="{y:.1}">{hidden} more not drawn</text>"#
        );
    }
    y
}
