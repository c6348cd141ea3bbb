//! Pages in a real browser: nothing is wider than the page, and names in headings stay whole. Skipped, with a
//! word, where no browser is installed.

use std::path::Path;
use std::process::Command;

use durawarp::plot::{Axis, LineSeries, Lines, Sheet};
use durawarp::report::{Column, Drawing, Page, Table};

/// Tells every element that reaches beyond the window and lies in nothing that scrolls, then the heights of
/// headings in lines.
const MEASURE: &str = "<script>
const out = [];
for (const e of document.querySelectorAll('main *')) {
    if (e.getBoundingClientRect().right > innerWidth + 0.5 && !e.closest('.wide') && !e.closest('pre, svg'))
        out.push('beyond ' + e.tagName);
}
if (document.documentElement.scrollWidth > innerWidth) out.push('page ' + document.documentElement.scrollWidth);
const wide = document.querySelector('.wide');
out.push('scrolls ' + (wide.scrollWidth > wide.clientWidth));
out.push('figure ' + Math.round(100 * document.querySelector('.drawing svg').clientWidth / document.querySelector('main').clientWidth));
for (const th of document.querySelectorAll('th')) {
    const range = document.createRange(); range.selectNodeContents(th);
    // A word is broken where a text node between break opportunities has two lines.
    for (const node of th.childNodes) if (node.nodeType == 3 && !node.data.includes(' ')) {
        range.selectNode(node);
        if (range.getClientRects().length > 1) out.push('broken ' + node.data);
    }
}
document.title = 'measured: ' + out.join('; ');
</script></body>";

fn page() -> Page {
    let mut page = Page::new("a page with a long title that goes on and on until it has to be broken at some blank");
    page.paragraph(&"one_word_that_is_longer_than_the_page_is_wide".repeat(8));
    let lines = Lines {
        sheet: Sheet::two_columns(),
        x: Axis::new("threads", ""),
        y: Axis::new("speed-up", ""),
        series: vec![LineSeries::of("NW", &[(1.0, 1.0), (2.0, 1.8)])],
        ideal: None,
    };
    page.figure(Drawing::new("scaling", "Speed-up by threads.", &lines.into()).unwrap());
    page.warning(&"a/path/without/blanks".repeat(20));
    let names = (0..30).map(|n| Column::number(&format!("memory_controller.nvm_written_bytes_{n} (bytes)")));
    let mut table = Table::new(names).caption("Many columns");
    table.row((0..30).map(|_| "123456789"));
    page.table(table);
    page
}

fn measured(browser: &str, folder: &Path, width: u32) -> String {
    let html = page().html().unwrap().replace("http-equiv=\"Content-Security-Policy\"", "name=\"none\"");
    let file = folder.join(format!("{width}.html"));
    std::fs::write(&file, html.replace("</body>", MEASURE)).unwrap();
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", "--virtual-time-budget=2000"])
        .arg(format!("--window-size={width},900"))
        .arg(format!("--user-data-dir={}", folder.join("profile").display()))
        .arg(format!("file://{}", file.display()))
        .output()
        .unwrap();
    let dom = String::from_utf8_lossy(&output.stdout);
    let title = dom.split("<title>").nth(1).and_then(|rest| rest.split("</title>").next());
    title.unwrap_or_else(|| panic!("no title: {dom}\n{}", String::from_utf8_lossy(&output.stderr))).to_owned()
}

#[test]
fn no_element_of_a_page_is_wider_than_the_window() {
    let Some(browser) = crate::cli_common::browser() else { return };
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("browser");
    std::fs::create_dir_all(&folder).unwrap();
    let folder = folder.canonicalize().unwrap();
    for width in [600, 1400] {
        assert_eq!(measured(browser, &folder, width), "measured: scrolls true; figure 100", "{width}");
    }
}
