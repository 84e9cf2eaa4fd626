//! Recorded delays: whether the server gave each its turn.

use kvlab_mock_server::ServerRow;

/// Whether `rows`, which are all that took a delay from `list`, took them one after the other: every
/// delay as often as so many requests give it a turn. `in_order` demands too that requests which
/// started one after the other have their delays in this order.
#[must_use]
pub fn follows(list: &[u64], rows: &[&ServerRow], in_order: bool) -> bool {
    let turns = (0..rows.len()).filter_map(|turn| list.get(turn % list.len().max(1)).copied());
    let mut expected: Vec<u64> = turns.clone().collect();
    let mut found: Vec<u64> = rows.iter().map(|row| row.drawn_ns).collect();
    expected.sort_unstable();
    found.sort_unstable();
    if expected != found {
        return false;
    }
    if !in_order {
        return true;
    }
    let mut rows: Vec<&ServerRow> = rows.to_vec();
    rows.sort_by_key(|row| row.start);
    let turns: Vec<u64> = turns.collect();
    let mut place = 0;
    // Requests that started together may have their delays in any order.
    rows.chunk_by(|a, b| a.start == b.start).all(|together| {
        let mut found: Vec<u64> = together.iter().map(|row| row.drawn_ns).collect();
        let mut expected = turns[place..place + together.len()].to_vec();
        place += together.len();
        found.sort_unstable();
        expected.sort_unstable();
        found == expected
    })
}

#[cfg(test)]
mod tests {
    use super::super::join::tests::pair;
    use super::*;

    fn rows(requests: &[(u64, u64)]) -> Vec<ServerRow> {
        let row = |(start, drawn): &(u64, u64)| {
            let mut row = pair(7, 0, *start).server;
            row.drawn_ns = *drawn;
            row
        };
        requests.iter().map(row).collect()
    }

    #[test]
    fn each_delay_has_its_turn() {
        let list = [5, 3, 9];
        let check = |requests: &[(u64, u64)], in_order| {
            let rows = rows(requests);
            follows(&list, &rows.iter().collect::<Vec<_>>(), in_order)
        };
        let good = [(10, 5), (30, 9), (20, 3), (40, 5)];
        assert!(check(&good, true));
        let swapped = [(10, 3), (20, 5), (30, 9), (40, 5)];
        assert!(check(&swapped, false) && !check(&swapped, true));
        let together = [(10, 3), (10, 5), (30, 9), (40, 5)];
        assert!(check(&together, true));
        let skipped = [(10, 5), (20, 3), (30, 5), (40, 5)];
        assert!(!check(&skipped, false));
    }
}
