//! Figures as pixels, for programs that take no SVG: `resvg` draws what [`Figure::svg`](super::Figure::svg)
//! wrote.
//!
//! Text needs a font, and this program brings none along: it takes one that the system has, of those that the
//! figures are laid out for if there is one. So a PNG is the same on hosts with the same fonts only; the SVG
//! is the same everywhere.

use std::sync::Arc;

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::fontdb::{Database, Family, Query};
use resvg::usvg::{Options, Tree};

/// Pixels an inch: what printers of journals ask for.
const DPI: f32 = 300.0;

/// Fonts that the layout's widths are those of, then others that nearly every system has one of.
const FONTS: [&str; 8] =
    ["Helvetica", "Arial", "Liberation Sans", "Nimbus Sans", "Arimo", "Noto Sans", "DejaVu Sans", "Open Sans"];

/// Draws SVG as PNG.
#[derive(Debug)]
pub struct Raster {
    fonts: Arc<Database>,
    font: String,
}

impl Raster {
    /// Looks for a font.
    ///
    /// # Errors
    /// The system has none.
    pub fn new() -> Result<Self, String> {
        let mut fonts = Database::new();
        fonts.load_system_fonts();
        let has = |name: &&&str| fonts.query(&Query { families: &[Family::Name(name)], ..Query::default() }).is_some();
        let known = FONTS.iter().find(has).map(|name| (*name).to_owned());
        let any = || fonts.faces().find_map(|face| Some(face.families.first()?.0.clone()));
        let Some(font) = known.or_else(any) else {
            let some = FONTS[..3].join(", ");
            return Err(format!("PNG needs a font of the system, and it has none: install one of {some}"));
        };
        fonts.set_sans_serif_family(&font);
        Ok(Raster { fonts: Arc::new(fonts), font })
    }

    /// The font that is taken.
    pub fn font(&self) -> &str {
        &self.font
    }

    /// A figure as PNG, 300 pixels an inch at the size of print.
    ///
    /// # Errors
    /// The text is no SVG, or there is no memory for its pixels.
    pub fn png(&self, svg: &str) -> Result<Vec<u8>, String> {
        let options = Options { fontdb: self.fonts.clone(), font_family: self.font.clone(), ..Options::default() };
        let tree = Tree::from_str(svg, &options).map_err(|fault| format!("cannot read the figure: {fault}"))?;
        // Sizes of the tree are in pixels of 1/96 inch.
        let scale = DPI / 96.0;
        let size = tree.size().to_int_size().scale_by(scale);
        let pixels = size.and_then(|size| Pixmap::new(size.width(), size.height()));
        let mut pixels = pixels.ok_or("the figure has no size, or is too large for a PNG")?;
        resvg::render(&tree, Transform::from_scale(scale, scale), &mut pixels.as_mut());
        pixels.encode_png().map_err(|fault| format!("cannot write PNG: {fault}"))
    }
}
