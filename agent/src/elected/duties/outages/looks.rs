//! When it is which node's turn to be looked at.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use cofferdam_kubernetes::Backoff;
use tokio::time::Instant;

use crate::elected::duties::Logged;
use crate::elected::nodes::Outages;
use crate::elected::outage::Outage;

/// What is new on a node that stays lost is found as often as this, however often others come and go.
const ROUND: Duration = Duration::from_secs(10);

/// After a look in which something failed; at most as long as a round.
const RETRY: Duration = Duration::from_secs(1);

/// The looks at all nodes with an outage.
#[derive(Debug, Default)]
pub(super) struct Looks {
    /// The last one at each.
    nodes: BTreeMap<String, Looked>,
    /// How many looks there were.
    count: u64,
}

/// What is remembered of a node as long as its outage lasts.
#[derive(Debug)]
pub(super) struct Looked {
    pub(super) outage: (Outage, Instant),
    /// Of which look it was the last.
    look: u64,
    /// The uids of sessions that were marked while the agent of their node has been silent. One that is unready and works all
    /// the same writes over a mark what it knows, and two that contradict each other would go on for ever: so each is marked
    /// once. Only the elected agent knows how long a silence lasts; an agent that others call silent does not know it.
    pub(super) marked: BTreeSet<String>,
    /// The uids of pods that are over, of which nothing was left.
    pub(super) released: BTreeSet<String>,
    /// When to look again, if ever.
    due: Option<Instant>,
    failures: Backoff,
}

/// What a look came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    Done,
    /// The outages became others meanwhile, and something may be left to do.
    HalfWay,
    /// The node was deleted, and had neither sessions nor slices of ours left: nothing comes there any more.
    ForGood,
}

impl Looked {
    pub(super) fn ended(&mut self, look: Result<Ended, Logged>, now: Instant) {
        let pause = match look {
            Ok(Ended::Done) => Some(ROUND),
            Ok(Ended::HalfWay) => Some(Duration::ZERO),
            Ok(Ended::ForGood) => None,
            Err(Logged) => Some(self.failures.failed()),
        };
        if look.is_ok() {
            self.failures.over();
        }
        self.due = pause.map(|pause| now + pause);
    }
}

impl Looks {
    /// Forgets what is no longer so.
    pub(super) fn keep(&mut self, outages: &Outages) {
        self.nodes.retain(|node, looked| outages.get(node) == Some(&looked.outage));
    }

    /// The nodes whose turn it is: those that nobody has looked at yet come first, the lost ones before the others, and then
    /// those whose last look is the oldest, so that none waits for ever where the outages change all the time.
    pub(super) fn due(&self, outages: &Outages, now: Instant) -> Vec<(String, (Outage, Instant))> {
        let of = |node: &str| self.nodes.get(node);
        let is_due = |looked: &Looked| looked.due.is_some_and(|due| due <= now);
        let due = outages.iter().filter(|(node, _)| of(node).is_none_or(is_due));
        let mut nodes: Vec<_> = due.map(|(node, outage)| (node.clone(), *outage)).collect();
        nodes.sort_by_key(|(node, (outage, _))| (of(node).map(|looked| looked.look), *outage));
        nodes
    }

    /// Another look at a node.
    pub(super) fn look(&mut self, node: &str, outage: (Outage, Instant)) -> &mut Looked {
        self.count += 1;
        let failures = Backoff::new(RETRY, ROUND);
        let first =
            || Looked { outage, look: 0, marked: BTreeSet::new(), released: BTreeSet::new(), due: None, failures };
        let looked = self.nodes.entry(node.to_owned()).or_insert_with(first);
        looked.look = self.count;
        looked
    }

    /// When it is a node's turn again.
    pub(super) fn next(&self) -> Option<Instant> {
        self.nodes.values().filter_map(|looked| looked.due).min()
    }

    /// Whether no last look failed.
    pub(super) fn are_fine(&self) -> bool {
        self.nodes.values().all(|looked| looked.failures.failures() == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_was_lost_just_now_comes_first_and_nobody_waits_for_ever() {
        let start = Instant::now();
        let assessed = |lost: &[&str], silent: &[&str]| -> Outages {
            let of = |names: &[&str], outage| names.iter().map(|name| ((*name).to_owned(), (outage, start))).collect();
            let (mut outages, silent): (Outages, Outages) = (of(lost, Outage::Lost), of(silent, Outage::Silent));
            outages.extend(silent);
            outages
        };
        let mut looks = Looks::default();
        let order = |looks: &mut Looks, outages: &Outages| {
            looks.keep(outages);
            let nodes = looks.due(outages, start);
            // The round is left with the first.
            looks.look(&nodes[0].0, nodes[0].1).ended(Ok(Ended::HalfWay), start);
            nodes.into_iter().map(|(node, _)| node).collect::<Vec<_>>().join(" ")
        };
        let both = assessed(&["c", "d"], &["a", "b"]);
        assert_eq!(order(&mut looks, &both), "c d a b");
        assert_eq!(order(&mut looks, &both), "d a b c");
        assert_eq!(order(&mut looks, &both), "a b c d");
        assert_eq!(order(&mut looks, &both), "b c d a");
        assert_eq!(order(&mut looks, &both), "c d a b");
        assert_eq!(order(&mut looks, &assessed(&["c", "d", "e"], &["a", "b"])), "e d a b c", "it is new");
        assert_eq!(order(&mut looks, &assessed(&["a", "c", "d"], &["b"])), "a d b c", "it is lost now");
        order(&mut looks, &assessed(&["a", "c"], &["b"]));
        assert_eq!(order(&mut looks, &both), "d a c b", "one was back, one is no longer lost");
    }

    #[test]
    fn what_was_so_in_one_outage_says_nothing_of_the_next() {
        let start = Instant::now();
        for outage in [Outage::Lost, Outage::Silent] {
            let [first, next] =
                [0, 1].map(|after| Outages::from([("a".to_owned(), (outage, start + Duration::from_secs(after)))]));
            let mut looks = Looks::default();
            let looked = looks.look("a", first["a"]);
            looked.marked.insert("uid".to_owned());
            looked.ended(Ok(Ended::ForGood), start);
            looks.keep(&first);
            assert_eq!(looks.due(&first, start + ROUND), [], "{outage:?}");
            // Nobody heard that it was over meanwhile.
            looks.keep(&next);
            assert_eq!(looks.due(&next, start + ROUND).len(), 1, "{outage:?}");
            assert!(looks.look("a", next["a"]).marked.is_empty(), "{outage:?}");
        }
    }

    #[test]
    fn each_node_has_its_own_turn() {
        let (start, names) = (Instant::now(), ["done", "failed", "gone", "left", "new"]);
        let outages: Outages = names.map(|name| (name.to_owned(), (Outage::Lost, start))).into();
        let mut looks = Looks::default();
        for (name, look) in [
            ("done", Ok(Ended::Done)),
            ("failed", Err(Logged)),
            ("gone", Ok(Ended::ForGood)),
            ("left", Ok(Ended::HalfWay)),
        ] {
            looks.look(name, outages[name]).ended(look, start);
        }
        for (after, due) in [
            (Duration::ZERO, "new left"),
            (RETRY, "new failed left"),
            (RETRY * 9, "new failed left"),
            (ROUND, "new done failed left"),
        ] {
            let due_then: Vec<_> = looks.due(&outages, start + after).into_iter().map(|(node, _)| node).collect();
            assert_eq!(due_then.join(" "), due, "{after:?}");
        }
        assert_eq!(looks.next(), Some(start), "of the one that was left half way");
        looks.look("left", outages["left"]).ended(Ok(Ended::Done), start);
        assert!(looks.next().is_some_and(|next| next > start && next <= start + RETRY), "of the one that failed");
    }
}
