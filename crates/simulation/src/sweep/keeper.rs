//! Keeps what came of points that ran elsewhere: on workers of a cluster that hand their outcomes back.
//!
//! The records are those of points that ran here, so that a sweep goes on from either. Invariant: what
//! [`Keeper::keep`] took is on the disk when it returns.

use super::batch::Batch;
use super::record::Record;
use super::runner::Done;
use super::store::{Store, Writer};

/// Writes to a folder of results, in a file of its own.
#[derive(Debug)]
pub struct Keeper {
    writer: Writer,
}

impl Keeper {
    /// Begins a file in the folder of a store, which does not read it before it is opened again.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn new(store: &Store) -> Result<Self, String> {
        Ok(Keeper { writer: Writer::new(store.folder())? })
    }

    /// Keeps what came of a point; nothing where it was not run.
    ///
    /// # Errors
    /// It cannot be written; what was written before stays.
    pub fn keep(&mut self, batch: &Batch, point: usize, done: &Done) -> Result<(), String> {
        let (name, content, bytes) = batch.content(point);
        let Some(record) = Record::done(&batch.points()[point].key, name, content, bytes, done) else {
            return Ok(());
        };
        let (line, _) = self.writer.author().line(&record)?;
        self.writer.append(&line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::sample::sample;
    use crate::run::Recipe;
    use crate::sweep::campaign::{Part, outlook, results};

    #[test]
    fn what_ran_elsewhere_is_there_when_the_folder_is_opened_again() {
        let folder = tempfile::tempdir().unwrap();
        let mut batch = Batch::default();
        for size in [64, 65, 66] {
            batch.add("", 0, Recipe::of("vecadd").set("params.N", size)).unwrap();
        }
        let mut keeper = Keeper::new(&Store::open(folder.path()).unwrap()).unwrap();
        let done =
            [Done::Good(Box::new(sample())), Done::NotRun, Done::Failed { why: "no memory".to_owned(), outcome: None }];
        for (point, done) in done.iter().enumerate() {
            keeper.keep(&batch, point, done).unwrap();
        }
        let store = Store::open(folder.path()).unwrap();
        assert_eq!(results(&batch, &store).unwrap(), done);
        let outlook = outlook(&batch, &store, &Part::default());
        assert_eq!((outlook.done, outlook.to_run), (1, vec![1, 2]), "what failed is to be run again");
    }
}
