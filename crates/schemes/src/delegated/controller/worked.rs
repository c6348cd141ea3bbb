//! A schedule worked by hand, by the scheduler's own code: sets of a few harts, all of them there at first,
//! and banks that each serve one request a step.
//!
//! A step: what the scheduler hands over goes behind what waits for its bank; each bank serves its first;
//! then these are durable, in the order of banks, and the scheduler has its turn for the next step.
//!
//! Source: persistence parallelism, Fig. 3 and section IV-D's example of Fig. 6(c). Not modelled: rows of
//! banks, the bus, the write queue's order; arrival.

use std::collections::VecDeque;

use super::super::messages::Persist;
use super::super::parameters::Delegated;
use super::PersistQueues;
use super::choice::Choice;
use durawarp_persist::journal::Author;
use durawarp_persist::{Banks, ControllerEvent, ControllerHandler, HandlerPlace, Outbox};

/// A request: the `number`-th of a hart, both from 1, as the paper writes 2.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkedRequest {
    pub hart: u16,
    /// Its place in the hart's order.
    pub number: u32,
    pub bank: u16,
}

/// A step of a schedule.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkedStep {
    /// The Ready-SET with which the step begins, requests under way included.
    pub ready: Vec<WorkedRequest>,
    /// Under `broi`, of the first step: each hart's priority, in thousandths of a bank.
    pub priorities: Vec<i64>,
    /// What the scheduler hands over: the paper's Sch-SET.
    pub handed_over: Vec<WorkedRequest>,
    /// What the banks serve.
    pub served: Vec<WorkedRequest>,
}

/// The requests of an example, each with a line of its own.
struct Example {
    queues: PersistQueues,
    outbox: Outbox,
    requests: Vec<WorkedRequest>,
}

/// The schedule of harts with these sets of banks, one after the other.
pub fn worked(scheduler: Delegated, banks: u16, harts: &[&[&[u16]]]) -> Vec<WorkedStep> {
    let mut example = Example::new(&scheduler, banks, harts);
    let mut waiting: Vec<VecDeque<(u64, WorkedRequest)>> = vec![VecDeque::new(); usize::from(banks)];
    let mut steps = Vec::new();
    let of_broi = |example: &Example| match &scheduler {
        Delegated::Broi(spec) => {
            let choice = Choice { spec, local: example.queues.queues.len(), starvation: 0 };
            choice.priorities(&example.queues.queues)
        }
        Delegated::Epoch(_) => Vec::new(),
    };
    let mut step = WorkedStep { ready: example.ready(), priorities: of_broi(&example), ..WorkedStep::default() };
    example.queues.schedule(&mut example.outbox);
    while !step.ready.is_empty() {
        // What the scheduler hands over stands behind what waits for its bank.
        for (token, request) in example.handed_over() {
            waiting[usize::from(request.bank)].push_back((token, request));
            step.handed_over.push(request);
        }
        let served: Vec<(u64, WorkedRequest)> = waiting.iter_mut().filter_map(VecDeque::pop_front).collect();
        step.served = served.iter().map(|(_, request)| *request).collect();
        steps.push(std::mem::take(&mut step));
        for (token, _) in served {
            example.queues.event(&ControllerEvent::Persisted(token), &mut example.outbox);
        }
        step.ready = example.ready();
    }
    steps
}

impl Example {
    fn new(scheduler: &Delegated, banks: u16, harts: &[&[&[u16]]]) -> Example {
        let place = HandlerPlace { cores: harts.len() as u16, harts: 1, ..HandlerPlace::default() };
        let mut queues = PersistQueues::new(scheduler.clone(), place);
        let stride = u64::from(banks);
        queues.banks(Banks { count: banks, of: Box::new(move |line| (line / 64 % stride) as u16) });
        let mut requests = Vec::new();
        for (hart, sets) in (0u16..).zip(harts) {
            let mut number = 0;
            for (nth, set) in sets.iter().enumerate() {
                if nth > 0 {
                    queues.queues[usize::from(hart)].push_barrier();
                }
                for &bank in *set {
                    number += 1;
                    let line = (requests.len() as u64 * stride + u64::from(bank)) * 64;
                    requests.push(WorkedRequest { hart: hart + 1, number, bank });
                    let (author, bytes) = (Author::default(), Box::new([0; 128]));
                    queues.receive(Persist { hart, id: number.into(), author, line, mask: 0xff, bytes }, 0);
                }
            }
        }
        Example { queues, outbox: Outbox::default(), requests }
    }

    fn of_line(&self, line: u64) -> WorkedRequest {
        self.requests[(line / 64 / u64::from(self.queues.banks.count)) as usize]
    }

    fn ready(&self) -> Vec<WorkedRequest> {
        let queues = self.queues.queues.iter();
        queues.flat_map(|queue| queue.ready(usize::MAX)).map(|of| self.of_line(of.persist.line)).collect()
    }

    fn handed_over(&mut self) -> Vec<(u64, WorkedRequest)> {
        // Who is told that a request is durable is nobody here.
        drop(self.outbox.take());
        let flushes: Vec<(u64, u64)> = self.outbox.flushes().drain(..).map(|flush| (flush.token, flush.line)).collect();
        flushes.into_iter().map(|(token, line)| (token, self.of_line(line))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delegated::{BROI_DEFAULTS, BroiSpec, EPOCH_DEFAULTS, EpochSpec};
    use crate::entry::values_of;

    fn names(requests: &[WorkedRequest]) -> Vec<String> {
        requests.iter().map(|of| format!("{}.{}", of.hart, of.number)).collect()
    }

    fn epoch() -> Delegated {
        let values = values_of::<EpochSpec>(EPOCH_DEFAULTS);
        Delegated::Epoch(serde_json::from_value(values.into()).unwrap())
    }

    fn broi() -> Delegated {
        let values = values_of::<BroiSpec>(BROI_DEFAULTS);
        Delegated::Broi(serde_json::from_value(values.into()).unwrap())
    }

    #[test]
    fn two_harts_of_one_bank_each_take_as_many_steps_as_they_have_requests() {
        let steps = worked(broi(), 2, &[&[&[0], &[0]], &[&[1, 1]]]);
        assert_eq!(steps.iter().map(|step| names(&step.served)).collect::<Vec<_>>(), [["1.1", "2.1"], ["1.2", "2.2"]]);
        assert_eq!(steps[0].priorities, [1900, 800], "bank 1 and the next set's bank 0; bank 0 alone");
    }

    #[test]
    fn an_epoch_waits_for_its_longest_bank() {
        let steps = worked(epoch(), 2, &[&[&[0, 0], &[1]], &[&[1], &[0]]]);
        assert_eq!(names(&steps[0].handed_over), ["1.1", "1.2", "2.1"]);
        assert_eq!(steps.iter().map(|step| names(&step.served)).collect::<Vec<_>>().concat().len(), 5);
        assert_eq!((names(&steps[1].served), steps[1].handed_over.len()), (vec!["1.2".to_owned()], 0));
        assert_eq!(names(&steps[2].handed_over), ["1.3", "2.2"]);
        assert_eq!(steps.len(), 3);
    }
}
