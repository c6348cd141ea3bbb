//! `durawarp sweep figures` and `durawarp sweep report`: what a sweep came to, drawn, and as one page.

use std::path::PathBuf;

use durawarp::diagnostic::Diagnostic;
use durawarp::plot::FigureError;
use durawarp::report::sweep::{Drawn, Showing};
use durawarp::sweep::Plan;

use super::args::{SweepFiguresArgs, SweepReportArgs};
use super::exit::{Exit, Stop};
use super::output::{Output, Outputs};
use super::{runs, terminal};

const NO_PNG: &str = "this program was built without PNG: build it with `--features png`, or take the SVG";

pub(super) fn figures(args: &SweepFiguresArgs) -> Result<Exit, Stop> {
    if args.png && !cfg!(feature = "png") {
        return Err(Stop::File(NO_PNG.to_owned()));
    }
    let plan = Plan::load(&args.spec)?;
    if plan.file.figures.is_empty() {
        return Err(Stop::File(format!("`{}` asks for no figures: it has no [[figure]]", args.spec.display())));
    }
    let store = runs::open(&args.results, true)?;
    let showing = Showing::read(&plan, &store).map_err(Stop::File)?;
    let drawn = chosen(args.only.as_deref(), &plan, showing.figures())?;
    let folder = args.out.clone().unwrap_or_else(|| PathBuf::from(format!("{}-figures", plan.file.name)));
    terminal::make_folder(&folder)?;
    // A figure that cannot be drawn does not keep the others from their files; the exit code tells of it.
    let mut exit = Exit::Good;
    for Drawn { name, figure, notes, .. } in drawn {
        let written = figure.and_then(|figure| {
            let told = |fault: FigureError| fault.to_string();
            let svg = figure.svg().map_err(told)?;
            let pixels = if args.png { Some(png(&svg)?) } else { None };
            Ok((svg, figure.csv().map_err(told)?, pixels))
        });
        match written {
            Ok((svg, csv, pixels)) => {
                let file = |ending: &str| folder.join(format!("{name}.{ending}"));
                Output::at(&file("svg"))?.write(svg.as_bytes())?;
                Output::at(&file("csv"))?.write(csv.as_bytes())?;
                if let Some(pixels) = pixels {
                    Output::at(&file("png"))?.write(&pixels)?;
                }
                terminal::print(&format!("{}\n", file("svg").display()));
            }
            Err(why) => {
                exit = Exit::BadInput;
                terminal::error(&format!("no figure `{name}`: {why}"));
            }
        }
        notes.iter().for_each(|note| terminal::note(&format!("figure `{name}`: {note}")));
    }
    Ok(exit)
}

/// The figures of a name: one, or those that one of the file comes to.
fn chosen(only: Option<&str>, plan: &Plan, drawn: Vec<Drawn>) -> Result<Vec<Drawn>, Stop> {
    let Some(only) = only else { return Ok(drawn) };
    let of_file = plan.file.figures.iter().zip(&plan.grids);
    // All figures are drawn in the order of the file.
    let families = of_file.flat_map(|(spec, grids)| grids.iter().map(|_| spec.name.clone()));
    let named: Vec<(String, Drawn)> = families.zip(drawn).collect();
    let names: Vec<String> = named.iter().flat_map(|(family, figure)| [family.clone(), figure.name.clone()]).collect();
    let chosen: Vec<Drawn> = named
        .into_iter()
        .filter(|(family, figure)| family == only || figure.name == only)
        .map(|(_, figure)| figure)
        .collect();
    if chosen.is_empty() {
        let fault = Diagnostic::nowhere("--only", format!("the sweep file asks for no figure `{only}`"));
        return Err(fault.with_nearest(only, names.iter().map(String::as_str)).into());
    }
    Ok(chosen)
}

pub(super) fn report(args: &SweepReportArgs) -> Result<Exit, Stop> {
    let plan = Plan::load(&args.spec)?;
    let path = args.out.clone().unwrap_or_else(|| PathBuf::from(format!("{}.html", plan.file.name)));
    let store = runs::open(&args.results, true)?;
    let mut outputs = Outputs::default();
    let out = outputs.open("--out", Some(&path));
    let stdout_is_taken = outputs.ready()?;
    let showing = Showing::read(&plan, &store).map_err(Stop::File)?;
    let page = showing.page().map_err(Stop::File)?;
    let html = page.html().map_err(|fault| Stop::File(fault.to_string()))?;
    if let Some(output) = out {
        output.write(html.as_bytes())?;
    }
    terminal::show(&format!("{}\n", path.display()), stdout_is_taken);
    Ok(Exit::Good)
}

#[cfg(feature = "png")]
fn png(svg: &str) -> Result<Vec<u8>, String> {
    durawarp::plot::png(svg)
}

/// Not called: `figures` refuses `--png` before it draws, in a program without the feature.
#[cfg(not(feature = "png"))]
fn png(_: &str) -> Result<Vec<u8>, String> {
    Err(NO_PNG.to_owned())
}
