//! Figures and the page of a sweep: what a file may ask for, what is wrong with one, what is drawn of points
//! that are there, that failed, or that are missing; and that the figure that `docs/sweeps.md` shows is what
//! its sweep gives.

use std::path::Path;

use crate::cli_common::{durawarp_in, ended, folder, wrong_from};
use durawarp::plot::{Better, Figure, Mean};
use durawarp::report::sweep::{Drawn, Showing};
use durawarp::sweep::campaign::{self, Part};
use durawarp::sweep::{Plan, Store, SweepFile, Workers};

/// The start of every file here. The second line behind it is line 9.
const HEAD: &str = "schema = 1\nname = \"it\"\nbaseline = { scheme = \"base\" }\n[base]\nworkload = \"vecadd\"\n\
    profile = \"ci\"\nset = { \"sm.count\" = 1 }\n";

/// Two schemes at three sizes.
const AXES: &str = "[[axis]]\nkey = \"scheme\"\nvalues = [\"base\", \"strict\"]\n\
    [[axis]]\nkey = \"params.N\"\nvalues = [64, 256, 1024]\n";

fn planned(rest: &str) -> Result<Plan, String> {
    let text = format!("{HEAD}{AXES}{rest}");
    let file = SweepFile::read("it.toml", text, Path::new("")).map_err(|faults| faults.to_string())?;
    Plan::new(file).map_err(|faults| faults.to_string())
}

/// Runs all points of a plan into a folder.
fn ran(plan: &Plan, folder: &Path) -> Store {
    let mut store = Store::open(folder).unwrap();
    let look = campaign::outlook(&plan.batch, &store, &Part::default());
    campaign::run(&plan.batch, &mut store, &look, &Part::default(), &Workers::default()).unwrap();
    Store::open(folder).unwrap()
}

#[test]
fn every_fault_of_a_figure_is_told_at_its_place() {
    // Behind head and axes: `[[figure]]` is line 14.
    let cases = [
        ("x = \"workload\"\ny = \"cycles\"\n", "it.toml:14:1: a figure lacks the key `kind`"),
        ("kind = \"line\"\nx = \"seed\"\ny = \"cycles\"\n", "it.toml:15:8: `kind` must be one of"),
        ("kind = \"line\"\nx = \"seed\"\ny = \"cycles\"\n", "did you mean `lines`?"),
        (
            "kind = \"bars\"\nx = \"sceme\"\ny = \"cycles\"\n",
            "it.toml:16:5: `sceme` is no axis of this sweep (did you mean `scheme`?)",
        ),
        (
            "kind = \"bars\"\nx = \"l2.slice_kb\"\ny = \"cycles\"\n",
            "it.toml:16:5: `l2.slice_kb` is no axis of this sweep (it has ",
        ),
        (
            "kind = \"bars\"\nx = \"scheme\"\ny = \"cicles\"\n",
            "it.toml:17:5: there is no metric `cicles` (did you mean `cycles`?)",
        ),
        (
            "kind = \"bars\"\nx = \"scheme\"\ny = \"cycles\"\ngroup = \"scheme\"\n",
            "it.toml:18:9: `scheme` is `x` already",
        ),
        ("kind = \"bars\"\nx = \"scheme\"\ny = \"cycles\"\nmeans = \"seed\"\n", "it.toml:18:1: unknown key `means` in"),
        ("kind = \"heat\"\nx = \"scheme\"\ny = \"params.N\"\n", "lacks the key `value`"),
        (
            "kind = \"stacked\"\nx = \"scheme\"\ny = \"stall\"\n",
            "it.toml:17:5: this kind shows one of `stalls`, `traffic`, `persists`",
        ),
        ("kind = \"stacked\"\nx = \"scheme\"\ny = [\"cycles\", \"ipc\"]\n", "it.toml:17:16: `ipc` is in"),
        ("kind = \"cdf\"\ny = \"cycles\"\n", "it.toml:16:5: this kind shows one of `persists`, `fences`, `boundaries`"),
        ("kind = \"cdf\"\nx = \"scheme\"\ny = \"persists\"\n", "it.toml:16:1: unknown key `x`"),
        (
            "kind = \"bars\"\nx = \"scheme\"\ny = \"cycles\"\nwhere = { seed = 3 }\n",
            "it.toml:18:18: no point has `seed` = 3",
        ),
        (
            "kind = \"bars\"\nx = \"scheme\"\ny = \"cycles\"\nname = \"a/b\"\n",
            "it.toml:18:8: a figure's name is that of its files",
        ),
        (
            "kind = \"bars\"\nx = \"scheme\"\ny = \"cycles\"\ncolumns = 3\n",
            "it.toml:18:11: a figure stands in 1 column",
        ),
        (
            "kind = \"bars\"\nx = \"scheme\"\ny = \"cycles\"\nheight_pt = 3\n",
            "it.toml:18:13: `height_pt` expects 60 to 700",
        ),
        (
            "kind = \"scaling\"\nx = \"params.N\"\ny = \"sm.ctas\"\n",
            "it.toml:17:5: a speed-up of `sm.ctas` is not known",
        ),
        // What takes points to be found.
        (
            "kind = \"bars\"\nx = \"scheme\"\ny = \"cycles\"\n",
            "it.toml:14:1: figure `it-bars` has 3 points in one place at scheme = base: they differ in `params.N`",
        ),
        ("kind = \"bars\"\nx = \"scheme\"\ny = \"cycles\"\n", "`mean = [..]` for geometric means"),
        (
            "kind = \"lines\"\nx = \"scheme\"\ny = \"cycles\"\neach = \"params.N\"\n",
            "`lines` needs numbers along x, and `scheme` has `base`",
        ),
        ("kind = \"cdf\"\ny = \"persists\"\ngroup = \"scheme\"\n", "they differ in `params.N`"),
    ];
    for (figure, expected) in cases {
        let found = planned(&format!("[[figure]]\n{figure}")).err().unwrap_or_else(|| panic!("no fault in:\n{figure}"));
        assert!(found.contains(expected), "no\n  {expected}\nin\n  {found}");
    }
    let twice = "[[figure]]\nkind = \"bars\"\nname = \"a\"\nx = \"scheme\"\ny = \"cicles\"\n\
        [[figure]]\nkind = \"bars\"\nname = \"b\"\nx = \"sceme\"\ny = \"cycles\"\n";
    let all = planned(twice).unwrap_err();
    assert!(all.contains("cicles") && all.contains("sceme"), "all at once: {all}");
    let same = "[[figure]]\nkind = \"bars\"\nname = \"a\"\nx = \"scheme\"\ny = \"cycles\"\neach = \"params.N\"\n";
    assert!(planned(&format!("{same}{same}")).unwrap_err().contains("two figures are called `a`"));
    let text = format!("{HEAD}{AXES}").replace("baseline = { scheme = \"base\" }\n", "");
    let text = format!("{text}[[figure]]\nkind = \"bars\"\nx = \"scheme\"\ny = \"cycles\"\nnormalise = true\n");
    let found = SweepFile::read("it.toml", text, Path::new("")).unwrap_err().to_string();
    assert!(
        found.contains("it.toml:17:13: `normalise` is over the sweep's baseline, and this sweep has none"),
        "{found}"
    );
}

/// One figure of each kind.
const FIGURES: &str = "[[figure]]\nkind = \"bars\"\nx = \"params.N\"\ny = \"cycles\"\ngroup = \"scheme\"\nnormalise = true\n\
    [[figure]]\nkind = \"lines\"\nx = \"params.N\"\ny = \"cycles\"\ngroup = \"scheme\"\n\
    [[figure]]\nkind = \"heat\"\nx = \"params.N\"\ny = \"scheme\"\nvalue = \"ipc\"\n\
    [[figure]]\nkind = \"stacked\"\nname = \"stalls\"\nx = \"params.N\"\ny = \"stalls\"\ngroup = \"scheme\"\n\
    [[figure]]\nkind = \"stacked\"\nname = \"traffic\"\nx = \"params.N\"\ny = \"traffic\"\ngroup = \"scheme\"\nnormalise = true\n\
    [[figure]]\nkind = \"cdf\"\ny = \"persists\"\ngroup = \"scheme\"\neach = \"params.N\"\n\
    [[figure]]\nkind = \"scaling\"\nx = \"params.N\"\ny = \"cycles\"\nwhere = { scheme = \"base\" }\n\
    [[figure]]\nkind = \"bars\"\nname = \"mean\"\nx = \"scheme\"\ny = \"cycles\"\nmean = \"params.N\"\nnormalise = true\n";

fn drawn<'a>(figures: &'a [Drawn], name: &str) -> &'a Drawn {
    figures.iter().find(|figure| figure.name == name).unwrap_or_else(|| panic!("no figure `{name}`"))
}

fn figure<'a>(figures: &'a [Drawn], name: &str) -> &'a Figure {
    drawn(figures, name).figure.as_ref().unwrap_or_else(|why| panic!("{name}: {why}"))
}

#[test]
fn every_kind_shows_what_outcomes_hold() {
    let plan = planned(FIGURES).unwrap_or_else(|faults| panic!("{faults}"));
    let store = ran(&plan, &folder("sweep_figures/kinds"));
    let outcome = |point: usize| store.outcome(store.result(&plan.points[point].key).unwrap()).unwrap().unwrap();
    let cycles: Vec<f64> = (0..6).map(|point| outcome(point).time.core_cycles as f64).collect();
    let showing = Showing::read(&plan, &store).unwrap();
    let figures = showing.figures();
    assert_eq!(figures.len(), 10, "one of the eight comes to three");

    let Figure::GroupedBars(bars) = figure(&figures, "it-bars") else { panic!() };
    assert_eq!((bars.groups.clone(), bars.series.len()), (["64", "256", "1024"].map(str::to_owned).to_vec(), 1));
    assert_eq!(
        (bars.sheet.better, bars.groups_name.as_str(), bars.mean),
        (Some(Better::Lower), "params.N", Mean::None)
    );
    for (size, bar) in bars.series[0].bars.iter().enumerate() {
        assert_eq!(bar.value, Some(cycles[3 + size] / cycles[size]));
    }
    let Figure::Lines(lines) = figure(&figures, "it-lines") else { panic!() };
    assert_eq!(lines.series[1].points[2].y, Some(cycles[5]));
    let Figure::HeatMap(map) = figure(&figures, "it-heat") else { panic!() };
    assert_eq!((map.rows.clone(), map.values[1][0]), (vec!["base".into(), "strict".into()], Some(outcome(3).ipc())));
    assert_eq!(map.sheet.better, Some(Better::Higher));

    let Figure::StackedBars(stalls) = figure(&figures, "stalls") else { panic!() };
    assert_eq!(stalls.sheet.better, None, "shares of waiting are neither good nor bad");
    for bar in stalls.groups.iter().flat_map(|group| &group.bars) {
        let whole: f64 = bar.values.iter().flatten().sum();
        assert!((whole - 100.0).abs() < 1e-9, "{bar:?}");
    }
    let at = stalls.parts.iter().position(|part| part == "persist").unwrap();
    let strict = outcome(3);
    let share = strict.total("sm", "slots_persist") as f64 / strict.total("sm", "slots_resident") as f64;
    assert!((stalls.groups[0].bars[1].values[at].unwrap() - share * 100.0).abs() < 1e-9);
    let Figure::StackedBars(traffic) = figure(&figures, "traffic") else { panic!() };
    let whole = |bar: usize| traffic.groups[2].bars[bar].values.iter().flatten().sum::<f64>();
    assert!((whole(0) - 1.0).abs() < 1e-9 && whole(1) > 1.0, "strict moves more: {}", whole(1));

    let Figure::Cdf(cdf) = figure(&figures, "it-cdf-1024") else { panic!() };
    let persists = outcome(5).persists.unwrap();
    let strict = &cdf.series[1];
    assert_eq!(strict.points.last().copied(), Some([persists.total.max_ns, 1.0]));
    let median = strict.points.iter().find(|[_, share]| *share >= 0.5).unwrap()[0];
    assert_eq!(median, persists.total.p50_ns);
    assert!(cdf.series[0].points.is_empty(), "base has no persists");
    assert!(drawn(&figures, "it-cdf-1024").notes[0].contains("vecadd base params.N=1024 has no persists"));

    let Figure::Lines(scaling) = figure(&figures, "it-scaling") else { panic!() };
    assert_eq!(scaling.series[0].points[2].y, Some(cycles[0] / cycles[2]));
    assert_eq!(scaling.ideal.as_ref().unwrap().points[2].y, Some(16.0));
    let Figure::GroupedBars(mean) = figure(&figures, "mean") else { panic!() };
    let product: f64 = (0..3).map(|size| cycles[3 + size] / cycles[size]).product();
    assert!((mean.series[0].bars[1].value.unwrap() - product.cbrt()).abs() < 1e-12);

    let again = Showing::read(&plan, &store).unwrap();
    assert_eq!(showing.page().unwrap().html().unwrap(), again.page().unwrap().html().unwrap(), "the same bytes");
}

#[test]
fn a_parameter_of_one_scheme_leaves_the_others_where_they_are() {
    let axes = "[[axis]]\nkey = \"scheme\"\nvalues = [\"base\", \"agpm\"]\n\
        [[axis]]\nkey = \"agpm.threshold_logs\"\nvalues = [500, 1000, 5000]\n\
        [[figure]]\nkind = \"lines\"\nx = \"agpm.threshold_logs\"\ny = \"cycles\"\ngroup = \"scheme\"\n\
        [[figure]]\nkind = \"bars\"\nx = \"workload\"\ny = \"cycles\"\ngroup = [\"scheme\", \"agpm.threshold_logs\"]\n";
    let file = SweepFile::read("it.toml", format!("{HEAD}{axes}"), Path::new("")).unwrap();
    let plan = Plan::new(file).unwrap_or_else(|faults| panic!("{faults}"));
    assert_eq!(plan.points.len(), 4);
    let store = ran(&plan, &folder("sweep_figures/schemes"));
    let figures = Showing::read(&plan, &store).unwrap().figures();
    let Figure::Lines(lines) = figure(&figures, "it-lines") else { panic!() };
    let values: Vec<Option<f64>> = lines.series[0].points.iter().map(|point| point.y).collect();
    assert!(values.len() == 3 && values.iter().all(|value| *value == values[0] && value.is_some()), "{values:?}");
    assert!(drawn(&figures, "it-lines").notes[0].contains("base (`agpm.threshold_logs`)"));
    let Figure::GroupedBars(bars) = figure(&figures, "it-bars") else { panic!() };
    let names: Vec<&str> = bars.series.iter().map(|series| series.name.as_str()).collect();
    assert_eq!(names, ["base", "agpm threshold_logs=500", "agpm threshold_logs=1000", "agpm threshold_logs=5000"]);
}

#[test]
fn points_that_failed_or_are_missing_leave_gaps_with_a_reason() {
    // The larger size has a wrong result, under either scheme.
    let text = format!("{HEAD}{AXES}").replace("[64, 256, 1024]", "[64, 30000]").replace("\"vecadd\"", "\"wrong\"");
    let figures = "[[figure]]\nkind = \"bars\"\nx = \"params.N\"\ny = \"cycles\"\ngroup = \"scheme\"\nnormalise = true\n\
        [[figure]]\nkind = \"lines\"\nx = \"params.N\"\ny = \"cycles\"\ngroup = \"scheme\"\n\
        [[figure]]\nkind = \"bars\"\nname = \"mean\"\nx = \"scheme\"\ny = \"cycles\"\nmean = \"params.N\"\n\
        [[figure]]\nkind = \"bars\"\nname = \"none\"\nx = \"scheme\"\ny = \"cycles\"\nwhere = { \"params.N\" = 30000 }\n";
    let folder = folder("sweep_figures/gaps");
    wrong_from(&folder, 30_000);
    std::fs::write(folder.join("it.toml"), format!("{text}{figures}")).unwrap();
    let words = ["none of its points has a value", "were not run: wrong base params.N=30000"];
    ended(&durawarp_in(&folder, &["sweep", "figures", "it.toml"]), 2, &words);
    ended(&durawarp_in(&folder, &["sweep", "run", "it.toml", "-q"]), 3, &["failed"]);
    let drawn = durawarp_in(&folder, &["sweep", "figures", "it.toml", "--out", "drawn"]);
    let words = ["no figure `none`", "it-bars.svg", "since these points failed: wrong base params.N=30000 (", "wrong"];
    ended(&drawn, 2, &words);
    let told = format!("{}{}", crate::cli_common::text(&drawn.stdout), crate::cli_common::text(&drawn.stderr));
    assert!(!told.contains("none.svg"), "{told}");
    let csv = |name: &str| std::fs::read_to_string(folder.join("drawn").join(format!("{name}.csv"))).unwrap();
    assert!(csv("it-bars").contains("bar,30000,strict,,,"), "{}", csv("it-bars"));
    assert!(csv("it-lines").contains("base,30000.0,,\n"), "{}", csv("it-lines"));
    let svg = std::fs::read_to_string(folder.join("drawn/it-bars.svg")).unwrap();
    assert!(svg.contains("n/a"));
    assert!(told.contains("no figure `mean`"), "a mean without one of its points is none: {told}");

    ended(&durawarp_in(&folder, &["sweep", "report", "it.toml"]), 0, &["it.html"]);
    let html = std::fs::read_to_string(folder.join("it.html")).unwrap();
    for word in
        ["2 done, 2 failed, 0 missing", "durawarp run wrong", "params.N=30000", "since these points failed: wrong base"]
    {
        assert!(html.contains(word), "no `{word}`");
    }
}

#[test]
fn points_that_were_cut_are_shown_with_a_note() {
    let figure = "[[figure]]\nkind = \"lines\"\nx = \"params.N\"\ny = \"ipc\"\ngroup = \"scheme\"\n";
    let text = format!("{HEAD}max_cycles = 8000\n{AXES}{figure}").replace("[64, 256, 1024]", "[64, 30000]");
    let folder = folder("sweep_figures/cut");
    std::fs::write(folder.join("it.toml"), text).unwrap();
    ended(&durawarp_in(&folder, &["sweep", "run", "it.toml", "-q"]), 0, &[]);
    let note = "Of the part before the cycle limit, unchecked: vecadd base params.N=30000";
    ended(&durawarp_in(&folder, &["sweep", "figures", "it.toml", "--out", "drawn"]), 0, &[note]);
    let csv = std::fs::read_to_string(folder.join("drawn/it-lines.csv")).unwrap();
    assert!(csv.lines().all(|line| line.split(',').nth(2).is_some_and(|y| !y.is_empty())), "a value each: {csv}");
    ended(&durawarp_in(&folder, &["sweep", "report", "it.toml"]), 0, &[]);
    let html = std::fs::read_to_string(folder.join("it.html")).unwrap();
    assert!(html.contains("4 done, 0 failed") && html.contains("cut by its cycle limit") && html.contains(note));
}

#[test]
fn the_commands_write_figures_and_a_page() {
    let folder = folder("sweep_figures/commands");
    std::fs::write(folder.join("it.toml"), format!("{HEAD}{AXES}{FIGURES}")).unwrap();
    ended(&durawarp_in(&folder, &["sweep", "run", "it.toml", "-q"]), 0, &[]);
    ended(
        &durawarp_in(&folder, &["sweep", "figures", "it.toml"]),
        0,
        &["it-figures/it-bars.svg", "it-figures/it-cdf-64.svg"],
    );
    for name in ["it-bars", "it-lines", "it-heat", "stalls", "traffic", "it-cdf-256", "it-scaling", "mean"] {
        let file = |ending: &str| std::fs::read_to_string(folder.join(format!("it-figures/{name}.{ending}"))).unwrap();
        assert!(roxmltree::Document::parse(&file("svg")).is_ok(), "{name}");
        assert!(file("csv").lines().count() > 1, "{name}");
    }
    let only = ended(
        &durawarp_in(&folder, &["sweep", "figures", "it.toml", "--only", "it-cdf", "--out", "few"]),
        0,
        &["it-cdf-64.svg"],
    );
    assert_eq!(only.matches(".svg").count(), 3);
    ended(
        &durawarp_in(&folder, &["sweep", "figures", "it.toml", "--only", "it-cdf-64", "--out", "few"]),
        0,
        &["it-cdf-64.svg"],
    );
    ended(&durawarp_in(&folder, &["sweep", "figures", "it.toml", "--only", "it-bar"]), 2, &["did you mean `it-bars`?"]);
    let png = durawarp_in(&folder, &["sweep", "figures", "it.toml", "--png", "--out", "pixels"]);
    if cfg!(feature = "png") {
        ended(&png, 0, &["it-bars.svg"]);
        let bytes = std::fs::read(folder.join("pixels/it-bars.png")).unwrap();
        assert_eq!(&bytes[..8], b"\x89PNG\r\n\x1a\n");
        let side = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
        assert_eq!(side(16), 1000, "a column of 240 pt at 300 pixels an inch");
    } else {
        ended(&png, 2, &["built without PNG"]);
        assert!(!folder.join("pixels").exists(), "nothing was begun");
    }
    ended(&durawarp_in(&folder, &["sweep", "report", "it.toml", "--out", "page.html"]), 0, &["page.html"]);
    let html = std::fs::read_to_string(folder.join("page.html")).unwrap();
    let words = [
        "6 points: 6 done, 0 failed, 0 missing",
        "No point failed and none is missing",
        "kind = &quot;bars&quot;",
        "Every parameter of `vecadd base params.N=64`",
        "Parameters without a source of their own",
        "durawarp 0.",
        "memory digest",
        "--set params.N=1024",
        "over base",
    ];
    for word in words {
        assert!(html.contains(word), "no `{word}`");
    }
    assert_eq!(html.matches("<svg").count(), 10);
    let loads = html.replace("=\"http://www.w3.org/", "");
    assert!(!loads.contains("http:") && !loads.contains("https:") && !loads.contains("src="), "it loads nothing");
    assert!(html.contains("<nav") && html.matches("class=\"sortable\"").count() > 3, "{} bytes", html.len());
    let origin = format!(">durawarp {}, machine ", env!("CARGO_PKG_VERSION"));
    assert!(html.matches(&origin).count() >= 10, "each figure says of what it is");
    let no_figures = format!("{HEAD}{AXES}");
    std::fs::write(folder.join("bare.toml"), no_figures).unwrap();
    ended(&durawarp_in(&folder, &["sweep", "figures", "bare.toml"]), 2, &["it has no [[figure]]"]);
}

/// The sweep whose figure `docs/sweeps.md` shows.
const SHOWN: &str = "benches/sweeps/l2.toml";

#[test]
fn the_figure_that_is_shown_is_what_its_sweep_gives() {
    let plan = Plan::load(Path::new(SHOWN)).unwrap_or_else(|faults| panic!("{faults}"));
    let store = ran(&plan, &folder("sweep_figures/shown"));
    let figures = Showing::read(&plan, &store).unwrap().figures();
    let found = figure(&figures, "l2-bars");
    assert!(drawn(&figures, "l2-bars").notes.is_empty());
    let beside = |ending: &str| std::fs::read_to_string(format!("benches/sweeps/l2-bars.{ending}")).unwrap();
    let again = "draw it again: durawarp sweep run benches/sweeps/l2.toml && durawarp sweep figures benches/sweeps/l2.toml \
        --out benches/sweeps";
    assert_eq!(found.csv().unwrap(), beside("csv"), "{again}");
    assert_eq!(found.svg().unwrap(), beside("svg"), "{again}");
}
