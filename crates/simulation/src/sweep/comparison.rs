//! One workload under several schemes: the points of `durawarp compare`.
//!
//! Invariants: `base`, which times are relative to, is always run and first; a change of a scheme's parameter
//! reaches that scheme's point only, and one that is of no scheme here is a fault; every fault is found
//! before anything runs. Of a machine of CPU cores the schemes that do not fit it are left out, each with the
//! reason; that every scheme of kernels fits every machine with a GPU is known.

use super::batch::Batch;
use super::runner::Done;
use crate::config::{Override, SchemeConfig};
use crate::outcome::Outcome;
use crate::run::Recipe;
use durawarp_base::diagnostic::Diagnostics;

/// What is to be run.
#[derive(Debug)]
pub struct Comparison {
    /// The runs.
    pub batch: Batch,
    /// Each scheme's name as its file says it, and its point of the batch, `base` first.
    pub points: Vec<(String, usize)>,
    /// Which of these were asked for, as they were; `base` may be there for the others alone.
    pub asked: Vec<bool>,
    /// Schemes that do not fit the machine, and why.
    pub left_out: Vec<(String, String)>,
}

impl Comparison {
    /// The runs of a recipe under the schemes of these names or paths; no name, or `all`, stands for all that
    /// are for its machine. Changes of schemes' parameters in the recipe are of the schemes named.
    ///
    /// # Errors
    /// All faults of the machine, the workload, the schemes and their changes; no scheme that fits.
    pub fn of(recipe: &Recipe, schemes: &[String]) -> Result<Self, Diagnostics> {
        let catalogue: Vec<String> = recipe.schemes().into_iter().map(str::to_owned).collect();
        let all = schemes.is_empty() || schemes.iter().any(|name| name == "all");
        let asked = if all { &catalogue } else { schemes };
        // The first is what cycles are relative to: it is run first, asked for or not.
        let mut names = vec![catalogue[0].as_str()];
        names.extend(asked.iter().map(String::as_str).filter(|&name| name != catalogue[0]));
        let (set, recipe) = (&recipe.scheme_set, Recipe { scheme_set: Vec::new(), ..recipe.clone() });
        let (mut batch, mut points) = batch_of(&recipe, set, &names)?;
        let mut left_out = Vec::new();
        if recipe.is_of_a_cpu() {
            let fit;
            (fit, left_out) = those_that_fit(&recipe, &names, asked)?;
            if fit.len() < names.len() {
                names = fit;
                (batch, points) = batch_of(&recipe, set, &names)?;
            }
        }
        let asked = names.iter().map(|name| asked.iter().any(|asked| asked == name)).collect();
        Ok(Comparison { batch, points, asked, left_out })
    }

    /// What is known of each run, in the order of the points, of what came of the batch's. Each is under the
    /// name that was asked for: results do not depend on names, so that one that is kept may have another.
    pub fn outcomes(&self, done: &[Done]) -> Vec<Option<Outcome>> {
        let outcome = |(scheme, at): &(String, usize)| {
            let mut outcome = match &done[*at] {
                Done::Good(outcome) | Done::Cut(outcome) => (**outcome).clone(),
                Done::Failed { outcome, .. } => (**outcome.as_ref()?).clone(),
                Done::NotRun => return None,
            };
            outcome.scheme_variant = (outcome.scheme != *scheme).then(|| scheme.clone());
            Some(outcome)
        };
        self.points.iter().map(outcome).collect()
    }
}

/// The schemes under which a run could begin, as they are without changes; why each other could not. Of those
/// that are asked for one must.
#[expect(clippy::type_complexity, reason = "names that fit, and names that do not with reasons")]
fn those_that_fit<'a>(
    recipe: &Recipe,
    schemes: &[&'a str],
    asked: &[String],
) -> Result<(Vec<&'a str>, Vec<(String, String)>), Diagnostics> {
    let (mut fit, mut left_out, mut faults) = (Vec::new(), Vec::new(), Diagnostics::default());
    for &scheme in schemes {
        match recipe.clone().scheme(scheme).build_any() {
            Ok(_) => fit.push(scheme),
            Err(found) => {
                let why = found.0.first().map_or_else(String::new, |fault| fault.message.clone());
                left_out.push((scheme.to_owned(), why));
                faults.0.extend(found.0);
            }
        }
    }
    let any = asked.iter().any(|asked| fit.contains(&asked.as_str()));
    if any { Ok((fit, left_out)) } else { Err(faults) }
}

/// The recipe under each scheme: what is to be run, and each scheme's name and point. Every fault at once.
fn batch_of(recipe: &Recipe, set: &[Override], schemes: &[&str]) -> Result<(Batch, Vec<(String, usize)>), Diagnostics> {
    let mut faults = Diagnostics::default();
    let mut keep = |found: Diagnostics| faults.0.extend(found.0);
    // Whom an override is for is known when all schemes are read.
    let loaded = SchemeConfig::load_each(schemes, set).map_err(&mut keep).ok();
    let (mut batch, mut points) = (Batch::default(), Vec::new());
    // Where one is wrong, the faults of machine and workload are told with it.
    let loaded = loaded.map_or_else(|| SchemeConfig::load_each(&schemes[..1], &[]), Ok)?;
    for (named, scheme) in schemes.iter().zip(loaded) {
        let of_scheme = set.iter().filter(|over| over.table() == scheme.table()).cloned();
        let recipe = of_scheme.fold(recipe.clone().scheme(*named), Recipe::change);
        let workload = recipe.workload.name().unwrap_or_default().to_owned();
        match batch.add(format!("{workload} {}", scheme.name).trim(), 0, recipe) {
            Ok(point) => points.push((scheme.name, point)),
            Err(found) => {
                // The others have the same.
                keep(found);
                break;
            }
        }
    }
    faults.into_result((batch, points))
}
