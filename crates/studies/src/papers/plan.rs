//! What to run: from figures to runs, each once, whatever number of figures and kernels need it.

use super::paper::{Figure, Reading, Request};
use super::runs::{Run, Runs};
use durawarp_base::diagnostic::Diagnostic;
use durawarp_base::diagnostic::Diagnostics;
use durawarp_schemes::catalogue;
use durawarp_simulation::config::Override;
use durawarp_simulation::config::SchemeConfig;
use durawarp_simulation::config::{AnyMachine, is_of_a_scheme};
use durawarp_simulation::run::Recipe;
use durawarp_simulation::sweep::Batch;
use durawarp_simulation::sweep::Done;
use durawarp_workload::Workload;

/// The runs of a request.
#[derive(Debug)]
pub struct PaperPlan {
    request: Request,
    runs: Vec<Run>,
    /// The point of each: two that come to the same have one.
    points: Vec<usize>,
    /// The same under each other reading.
    readings: Vec<(&'static Reading, Vec<usize>)>,
    batch: Batch,
    notes: Vec<String>,
}

impl PaperPlan {
    /// Resolves everything that the request needs; every fault at once.
    ///
    /// # Errors
    /// The machine, a scheme or a workload does not load, or a change is for nobody.
    pub fn new(request: Request) -> Result<Self, Diagnostics> {
        let mut plan = PaperPlan {
            request,
            runs: Vec::new(),
            points: Vec::new(),
            readings: Vec::new(),
            batch: Batch::default(),
            notes: Vec::new(),
        };
        let mut faults = Diagnostics::default();
        let mut keep = |found: Diagnostics| {
            for fault in found.0 {
                // Many runs may have it.
                if !faults.0.contains(&fault) {
                    faults.push(fault);
                }
            }
        };
        let runs = plan.runs_of_figures();
        // Where nothing is run they are checked all the same.
        AnyMachine::load(&plan.request.machine, &plan.request.set).map_err(&mut keep).ok();
        plan.check_scheme_changes(&runs).map_err(&mut keep).ok();
        plan.check_programs(&runs).map_err(&mut keep).ok();
        plan.points = plan.add(&runs, None, &mut keep);
        for reading in plan.read_otherwise() {
            let points = plan.add(&runs, Some(reading), &mut keep);
            plan.readings.push((reading, points));
        }
        plan.runs = runs;
        faults.into_result(plan)
    }

    /// Has runs in the batch, under a reading: their points.
    fn add(&mut self, runs: &[Run], reading: Option<&Reading>, mut keep: impl FnMut(Diagnostics)) -> Vec<usize> {
        let mut points = Vec::new();
        for run in runs {
            let label = reading.map_or_else(|| run.label(), |reading| format!("{}, {}", run.label(), reading.name));
            let point = self.recipe(run, reading).and_then(|recipe| {
                let work = (self.request.paper.work)(run.workload).unwrap_or(0);
                self.batch.add(&label, work, recipe)
            });
            match point {
                Ok(point) => points.push(point),
                Err(found) => keep(found),
            }
        }
        points
    }

    /// Other readings of the paper, as far as nobody has decided what they are about.
    fn read_otherwise(&mut self) -> Vec<&'static Reading> {
        let Request { paper, machine, set, scheme_set, bracket, .. } = &self.request;
        if !bracket || paper.readings.is_empty() {
            return Vec::new();
        }
        let own_machine = machine == paper.machine;
        let decided = |over: &Override| paper.readings.iter().any(|reading| reading.decides(&over.key));
        if !own_machine || set.iter().chain(scheme_set).any(decided) {
            self.notes.push("other readings are of the paper's own machine: left out".to_owned());
            return Vec::new();
        }
        paper.readings.iter().collect()
    }

    /// What the figures need, each once; those of schemes that are not there are left out.
    fn runs_of_figures(&mut self) -> Vec<Run> {
        let mut runs: Vec<Run> = Vec::new();
        for run in self.request.figures.iter().flat_map(|figure| (figure.runs)(&self.request)) {
            if catalogue::find(run.scheme).is_err() {
                let note = format!("scheme `{}` is not there yet: left out", run.scheme);
                if !self.notes.contains(&note) {
                    self.notes.push(note);
                }
            } else if !runs.contains(&run) {
                runs.push(run);
            }
        }
        runs
    }

    /// A change of a scheme is for one that the figures run. A figure that is arithmetic may take the
    /// parameters of any scheme of its paper.
    fn check_scheme_changes(&self, runs: &[Run]) -> Result<(), Diagnostics> {
        let mut schemes: Vec<&str> = runs.iter().map(|run| run.scheme).collect();
        let runs_of = |figure: &Figure| (figure.runs)(&self.request);
        if self.request.figures.iter().any(|figure| runs_of(figure).is_empty()) {
            let of_paper = self.request.paper.figures.iter().flat_map(runs_of).map(|run| run.scheme);
            schemes.extend(of_paper.filter(|scheme| catalogue::find(scheme).is_ok()));
        }
        schemes.sort_unstable();
        schemes.dedup();
        SchemeConfig::load_each(&schemes, &self.request.scheme_set).map(|_| ())
    }

    /// Programs of others are for a figure that shows some.
    fn check_programs(&self, runs: &[Run]) -> Result<(), Diagnostics> {
        let Request { paper, programs, figures, .. } = &self.request;
        let shows = |figure: &Figure| (figure.runs)(&self.request).iter().any(|run| programs.contains(&run.workload));
        if programs.is_empty() || runs.iter().any(|run| programs.contains(&run.workload)) {
            return Ok(());
        }
        let showing = paper.figures.iter().filter(|figure| shows(figure)).map(|figure| figure.name);
        let (asked, showing): (Vec<&str>, Vec<&str>) =
            (figures.iter().map(|figure| figure.name).collect(), showing.collect());
        let message = format!("no program of others is shown by {} of `{}`", asked.join(", "), paper.name);
        let fault = Diagnostic::nowhere("--programs", message);
        Err(match showing[..] {
            [] => fault.with_help("`durawarp reproduce lightwsp-cpu --figure fig7` shows some"),
            _ => fault.with_help(format!("figures that show some: {}", showing.join(", "))),
        }
        .into())
    }

    fn recipe(&self, run: &Run, reading: Option<&Reading>) -> Result<Recipe, Diagnostics> {
        let Request { profile, seed, machine, set, scheme_set, .. } = &self.request;
        let table = SchemeConfig::load(run.scheme, &[])?.table().to_owned();
        let instrument =
            run.instrument.or(self.request.instrument).of_manifest(Workload::load(run.workload)?.instrument());
        let of_table = scheme_set.iter().filter(|over| over.table() == table);
        let recipe = Recipe::of(run.workload).machine(run.machine.unwrap_or(machine)).scheme(run.scheme);
        // A program of others may have other profiles than those of papers.
        let of_others = self.request.programs.contains(&run.workload);
        let recipe = if of_others { recipe.profile_if_any(profile) } else { recipe.profile(profile) };
        let recipe = recipe.seed(*seed).instrument(instrument).persistent(run.in_nvm).reference(false);
        let mut recipe = set.iter().chain(of_table).cloned().fold(recipe, Recipe::change);
        let of_reading = reading.into_iter().flat_map(|reading| reading.set).map(|text| (*text, true));
        let of_run = run.set.iter().map(|text| (text.as_str(), false));
        for (text, is_reading) in of_reading.chain(of_run) {
            let over = Override::parse(text).map_err(|message| Diagnostic::nowhere(&run.label(), message))?;
            // A reading may be about several schemes, and those of another machine than the paper's main one
            // are read so, too; the machine is what its own file takes it for.
            let applies = match is_of_a_scheme(&over) {
                true => over.table() == table,
                false => !is_reading || run.machine.is_none(),
            };
            if applies {
                recipe = recipe.change(over);
            }
        }
        Ok(recipe)
    }

    /// What was asked for.
    pub fn request(&self) -> &Request {
        &self.request
    }

    /// What to run.
    pub fn batch(&self) -> &Batch {
        &self.batch
    }

    /// The runs that figures need.
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// Which point of the batch each of them is.
    pub fn points(&self) -> &[usize] {
        &self.points
    }

    /// Which point a run is, if it is one of the plan.
    pub fn point_of(&self, run: &Run) -> Option<usize> {
        self.runs.iter().position(|other| other == run).map(|at| self.points[at])
    }

    /// The runs that went well, each at its point: those of the paper's machine, or of a reading.
    pub fn runs_at<'a>(&'a self, points: &[usize], results: &'a [Done]) -> Runs<'a> {
        let good = self.runs.iter().zip(points).filter_map(|(run, &point)| Some((run, results[point].good()?)));
        Runs::new(good.collect())
    }

    /// Other readings, and which points their runs are.
    pub fn readings(&self) -> &[(&'static Reading, Vec<usize>)] {
        &self.readings
    }

    /// What was left out.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }
}

#[cfg(test)]
mod tests {
    use super::super::agpm;
    use super::*;

    fn request(figures: &[&str], kernels: &[&str]) -> Request {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let request = Request::new(&agpm::PAPER).only(&owned(figures), &owned(kernels)).unwrap();
        Request { profile: "ci".to_owned(), bracket: false, ..request }
    }

    fn plan(figures: &[&str], kernels: &[&str]) -> PaperPlan {
        PaperPlan::new(request(figures, kernels)).unwrap_or_else(|faults| panic!("{faults}"))
    }

    #[test]
    fn figures_and_kernels_share_their_runs() {
        let points = |plan: PaperPlan| plan.batch().points().len();
        assert_eq!(points(plan(&["fig3", "fig5"], &["ATAX1", "ATAX2", "BFS"])), 2 * 3);
        let readings = agpm::runs::READINGS.len();
        assert_eq!(points(plan(&["fig3", "fig4", "table2"], &["ATAX1"])), 3 + 1 + readings);
        assert_eq!(points(plan(&["table3", "overheads"], &["ATAX1"])), 0);
        // On a machine that coalesces by half-warps anyway, counting so is no other run.
        let mut half = request(&["fig3", "fig4"], &["ATAX1"]);
        half.set = vec![Override::parse("sm.coalescer=half_warp_legacy").unwrap()];
        let half = PaperPlan::new(half).unwrap_or_else(|faults| panic!("{faults}"));
        assert_eq!((half.runs().len(), points(half)), (4, 3));
    }

    #[test]
    fn a_figure_without_runs_takes_parameters_of_the_papers_schemes() {
        let arithmetic = |text: &str| {
            let scheme_set = vec![Override::parse(text).unwrap()];
            PaperPlan::new(Request { scheme_set, ..request(&["table3", "overheads"], &["ATAX1"]) })
        };
        assert!(arithmetic("agpm.key=slot").is_ok());
        let told = arithmetic("sbrp.pb_entries=8").unwrap_err().to_string();
        assert!(told.contains("`sbrp`, which is none of the schemes "), "{told}");
        assert!(!told.contains("schemes \n") && told.contains("agpm"), "{told}");
    }

    #[test]
    fn faults_are_told_before_anything_runs() {
        let told = |change: &dyn Fn(&mut Request)| {
            let mut request = request(&["fig3"], &["ATAX1"]);
            change(&mut request);
            PaperPlan::new(request).unwrap_err().to_string()
        };
        let over = |text: &str| vec![Override::parse(text).unwrap()];
        assert!(told(&|request| request.profile = "papper".to_owned()).contains("papper"));
        assert!(told(&|request| request.scheme_set = over("agpm.key=slot")).contains("none of the schemes base"));
        let both = told(&|request| {
            request.set = over("sm.cuont=1");
            request.profile = "papper".to_owned();
        });
        assert!(both.contains("`sm.count`") && both.contains("papper"), "{both}");
    }
}
