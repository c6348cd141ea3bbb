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

/// What a script makes the title of, which runs when everything else has.
fn measured(browser: &str, folder: &Path, page: &Page, width: u32, script: &str) -> String {
    // As the page's own, so that what the page forbids is forbidden here, too.
    let script = script.replace("<script>", "<script nonce=\"sorting\">");
    let file = folder.join(format!("{width}-{}.html", script.len()));
    std::fs::write(&file, page.html().unwrap().replace("</body>", &script)).unwrap();
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
        assert_eq!(
            measured(browser, &folder, &page(), width, MEASURE),
            "measured: scrolls true; figure 100",
            "{width}"
        );
    }
}

/// Clicks on the first column once, then on the second three times, and tells the rows after each click.
const SORT: &str = "<script>
const out = [], heads = document.querySelectorAll('th button');
const rows = () => [...document.querySelectorAll('tbody tr')].map(row => [...row.cells].map(cell => cell.textContent).join(' ')).join(', ');
for (const at of [0, 1, 1, 1]) { heads[at].click(); out.push(rows()); }
document.title = out.join('; ');
</script></body>";

#[test]
fn a_click_on_a_heading_sorts_a_table_and_the_third_restores_it() {
    let Some(browser) = crate::cli_common::browser() else { return };
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("browser-sort");
    std::fs::create_dir_all(&folder).unwrap();
    let folder = folder.canonicalize().unwrap();
    let mut page = Page::new("a page");
    let mut table = Table::new([Column::text("point"), Column::number("cycles")]);
    [["p10", "1,024"], ["p9", "n/a"], ["p2", "96.5"]].into_iter().for_each(|row| table.row(row));
    page.table(table);
    let told = measured(browser, &folder, &page, 900, SORT);
    let [names, up, down, written] = told.split("; ").collect::<Vec<_>>()[..] else { panic!("{told}") };
    assert_eq!(names, "p2 96.5, p9 n/a, p10 1,024");
    assert_eq!(up, "p2 96.5, p10 1,024, p9 n/a");
    assert_eq!(down, "p10 1,024, p2 96.5, p9 n/a");
    assert_eq!(written, "p10 1,024, p9 n/a, p2 96.5");
}
