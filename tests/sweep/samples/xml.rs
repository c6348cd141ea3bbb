//! A figure's SVG as boxes and counts.

use durawarp::plot::text_width;
use roxmltree::{Document, Node};

pub(crate) type Point = (f64, f64);

/// A text with the corners of its estimated box.
#[derive(Debug)]
pub(crate) struct Label {
    pub(crate) text: String,
    pub(crate) size: f64,
    pub(crate) corners: [Point; 4],
}

pub(crate) fn number(node: Node<'_, '_>, name: &str) -> f64 {
    let text = node.attribute(name).unwrap_or("0");
    text.trim_end_matches("pt").parse().unwrap_or_else(|_| panic!("{name}={text}"))
}

/// Elements of a class.
pub(crate) fn class<'a>(svg: &'a Document<'a>, name: &'a str) -> Vec<Node<'a, 'a>> {
    svg.descendants().filter(|node| node.attribute("class") == Some(name)).collect()
}

/// The numbers of `translate(...)`, `rotate(...)`.
pub(crate) fn transform(node: Node<'_, '_>) -> Vec<f64> {
    let inside = node.attribute("transform").unwrap_or("(0 0)");
    let inside = inside.split(['(', ')']).nth(1).unwrap();
    inside.split(' ').map(|part| part.parse().unwrap()).collect()
}

/// A bar's left, top, right and foot.
pub(crate) fn bar(node: Node<'_, '_>) -> [f64; 4] {
    let at = transform(node);
    let (width, height) = (number(node, "width"), number(node, "height"));
    assert_eq!(number(node, "y"), -height);
    [at[0], at[1] - height, at[0] + width, at[1]]
}

pub(crate) fn labels(svg: &Document<'_>) -> Vec<Label> {
    let texts = svg.descendants().filter(|node| node.has_tag_name("text"));
    texts
        .map(|node| {
            let text = node.text().unwrap_or("").to_owned();
            let (x, y, size) = (number(node, "x"), number(node, "y"), number(node, "font-size"));
            let bold = if node.attribute("font-weight").is_some() { 1.05 } else { 1.0 };
            let width = text_width(&text, size) * bold;
            let left = match node.attribute("text-anchor") {
                Some("middle") => -width / 2.0,
                Some("end") => -width,
                _ => 0.0,
            };
            let angle = transform(node)[0].to_radians();
            let place =
                |(dx, dy): Point| (x + dx * angle.cos() - dy * angle.sin(), y + dx * angle.sin() + dy * angle.cos());
            let (above, below) = (-0.72 * size, 0.1 * size);
            let corners = [(left, above), (left + width, above), (left + width, below), (left, below)].map(place);
            Label { text, size, corners }
        })
        .collect()
}

/// Whether two boxes share more than a hair: no line separates them.
pub(crate) fn overlap(a: &Label, b: &Label) -> bool {
    let axes = |label: &Label| {
        let [p, q, _, s] = label.corners;
        [(q.0 - p.0, q.1 - p.1), (s.0 - p.0, s.1 - p.1)]
    };
    let separated = |axis: &Point| {
        let length = axis.0.hypot(axis.1);
        let range = |label: &Label| {
            let along = label.corners.map(|(x, y)| (x * axis.0 + y * axis.1) / length);
            (along.iter().copied().fold(f64::MAX, f64::min), along.iter().copied().fold(f64::MIN, f64::max))
        };
        let ((a_low, a_high), (b_low, b_high)) = (range(a), range(b));
        length < 1e-9 || a_high <= b_low + 0.1 || b_high <= a_low + 0.1
    };
    !axes(a).iter().chain(&axes(b)).any(separated)
}

/// Asserts what holds for every figure: it is XML, has its size, writes no number that is none, and its texts are large
/// enough, on the paper, and do not cover each other.
pub(crate) fn check(name: &str, svg: &str) {
    let document = Document::parse(svg).unwrap_or_else(|error| panic!("{name}: {error}"));
    let root = document.root_element();
    let (width, height) = (number(root, "width"), number(root, "height"));
    assert_eq!(root.attribute("viewBox"), Some(format!("0 0 {width} {height}").as_str()), "{name}");
    assert!(
        root.attribute("width").unwrap().ends_with("pt")
            && root.attribute("font-family").unwrap().contains("sans-serif")
    );
    for node in document.descendants() {
        for attribute in node.attributes() {
            let value = attribute.value();
            assert!(!value.contains("NaN") && !value.contains("inf"), "{name}: {attribute:?}");
        }
        if let Some(used) = node.attribute("fill").and_then(|fill| fill.strip_prefix("url(#")) {
            let id = used.trim_end_matches(')');
            assert!(document.descendants().any(|n| n.attribute("id") == Some(id)), "{name}: no {id}");
        }
    }
    let labels = labels(&document);
    for (i, label) in labels.iter().enumerate() {
        assert!(label.size >= 6.0, "{name}: {label:?}");
        for (x, y) in label.corners {
            assert!((-0.1..=width + 0.1).contains(&x) && (-0.1..=height + 0.1).contains(&y), "{name}: {label:?}");
        }
        for other in &labels[..i] {
            assert!(!overlap(label, other), "{name}: `{}` covers `{}`: {label:?}, {other:?}", label.text, other.text);
        }
    }
}
