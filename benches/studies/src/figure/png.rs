//! A figure as PNG, with a font that the executable carries: a bare machine has none.

use crate::error::{Context, Result};
use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree};

/// Pixels for each unit of the picture: enough for print.
const SCALE: f32 = 2.0;

/// Turns SVG into PNG.
pub struct Painter {
    options: Options<'static>,
}

impl Painter {
    /// With the font that the executable carries.
    pub fn new() -> Painter {
        let mut options = Options::default();
        let fonts = options.fontdb_mut();
        fonts.load_font_data(dejavu::sans::regular().to_vec());
        fonts.load_font_data(dejavu::sans::bold().to_vec());
        fonts.set_sans_serif_family("DejaVu Sans");
        "DejaVu Sans".clone_into(&mut options.font_family);
        Painter { options }
    }

    /// The picture.
    pub fn paint(&self, svg: &str) -> Result<Vec<u8>> {
        let tree = Tree::from_str(svg, &self.options).context("cannot read the figure")?;
        let size = tree
            .size()
            .to_int_size()
            .scale_by(SCALE)
            .ok_or("the figure has no size")
            .context("cannot paint the figure")?;
        let mut pixels = Pixmap::new(size.width(), size.height())
            .ok_or("the figure is too large")
            .context("cannot paint the figure")?;
        resvg::render(
            &tree,
            Transform::from_scale(SCALE, SCALE),
            &mut pixels.as_mut(),
        );
        pixels
            .encode_png()
            .context("cannot write the figure as PNG")
    }
}
