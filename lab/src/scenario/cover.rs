//! Which combinations of a sweep's values are run: all of them, or so many that any two values of
//! two axes meet at least once.
//!
//! Most faults of timing code need two circumstances at once, few need three, so a pairwise cover
//! finds most of what the full product would, in about as many runs as the two longest axes have
//! combinations.

/// Every combination; the last axis turns fastest.
pub(super) fn product(lengths: &[usize]) -> Vec<Vec<usize>> {
    let mut rows = vec![Vec::new()];
    for length in lengths {
        rows = rows
            .iter()
            .flat_map(|row: &Vec<usize>| {
                (0..*length).map(|value| {
                    let mut longer = row.clone();
                    longer.push(value);
                    longer
                })
            })
            .collect();
    }
    rows
}

/// Combinations in which every pair of values of any two axes occurs. Each row begins with the first
/// pair that has not been met and takes, axis by axis, the value that meets most new pairs; among
/// equals the one that was used least, then the first. So the same axes give the same rows.
pub(super) fn pairwise(lengths: &[usize]) -> Vec<Vec<usize>> {
    if lengths.len() < 2 {
        return product(lengths);
    }
    let mut open = Pairs::new(lengths);
    let mut used: Vec<Vec<usize>> = lengths.iter().map(|length| vec![0; *length]).collect();
    let mut rows = Vec::new();
    while let Some(seed) = open.first() {
        let row = open.row(seed, lengths, &used);
        open.meet(&row);
        for (axis, value) in row.iter().enumerate() {
            used[axis][*value] += 1;
        }
        rows.push(row);
    }
    rows
}

/// An axis and one of its values.
type Place = (usize, usize);

/// Which pairs have not been met.
struct Pairs {
    /// Place of an axis' first value among all values.
    offsets: Vec<usize>,
    /// All values of all axes.
    count: usize,
    /// By (place of one, place of the other), the earlier axis first.
    open: Vec<bool>,
    /// Pairs before this one have been met.
    from: usize,
}

impl Pairs {
    fn new(lengths: &[usize]) -> Self {
        let mut offsets = Vec::with_capacity(lengths.len());
        let mut count = 0;
        for length in lengths {
            offsets.push(count);
            count += length;
        }
        let mut pairs = Self {
            offsets,
            count,
            open: vec![false; count * count],
            from: 0,
        };
        for (one, length) in lengths.iter().enumerate() {
            for (other, other_length) in lengths.iter().enumerate().skip(one + 1) {
                for value in 0..*length {
                    for other_value in 0..*other_length {
                        let place = pairs.place((one, value), (other, other_value));
                        pairs.open[place] = true;
                    }
                }
            }
        }
        pairs
    }

    fn place(&self, one: Place, other: Place) -> usize {
        let (early, late) = if one.0 < other.0 {
            (one, other)
        } else {
            (other, one)
        };
        (self.offsets[early.0] + early.1) * self.count + self.offsets[late.0] + late.1
    }

    /// The first pair that has not been met.
    fn first(&mut self) -> Option<(Place, Place)> {
        let found = self.open.iter().skip(self.from).position(|open| *open)?;
        self.from += found;
        Some((
            self.value(self.from / self.count),
            self.value(self.from % self.count),
        ))
    }

    fn value(&self, place: usize) -> Place {
        let axis = self.offsets.partition_point(|offset| *offset <= place) - 1;
        (axis, place - self.offsets[axis])
    }

    fn row(
        &self,
        (one, other): (Place, Place),
        lengths: &[usize],
        used: &[Vec<usize>],
    ) -> Vec<usize> {
        let mut row: Vec<Option<usize>> = vec![None; lengths.len()];
        row[one.0] = Some(one.1);
        row[other.0] = Some(other.1);
        for axis in 0..lengths.len() {
            if row[axis].is_some() {
                continue;
            }
            let news = |value: usize| {
                let met = |(place, chosen): (usize, &Option<usize>)| {
                    chosen
                        .is_some_and(|chosen| self.open[self.place((axis, value), (place, chosen))])
                };
                row.iter().enumerate().filter(|pair| met(*pair)).count()
            };
            // The first of those with most new pairs and least use.
            let best = (0..lengths[axis])
                .min_by_key(|value| (std::cmp::Reverse(news(*value)), used[axis][*value]));
            row[axis] = best;
        }
        row.into_iter().flatten().collect()
    }

    fn meet(&mut self, row: &[usize]) {
        for (one, value) in row.iter().enumerate() {
            for (other, other_value) in row.iter().enumerate().skip(one + 1) {
                let place = self.place((one, *value), (other, *other_value));
                self.open[place] = false;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn assert_covers(lengths: &[usize], rows: &[Vec<usize>]) {
        for one in 0..lengths.len() {
            for other in one + 1..lengths.len() {
                let met: BTreeSet<_> = rows.iter().map(|row| (row[one], row[other])).collect();
                assert_eq!(met.len(), lengths[one] * lengths[other], "{one} {other}");
            }
        }
        for row in rows {
            assert_eq!(row.len(), lengths.len());
            assert!(
                row.iter()
                    .zip(lengths)
                    .all(|(value, length)| value < length)
            );
        }
        let different: BTreeSet<_> = rows.iter().collect();
        assert_eq!(different.len(), rows.len(), "a row comes twice");
    }

    #[test]
    fn the_product_turns_the_last_axis_fastest() {
        let rows = product(&[2, 3]);
        let expected = [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]];
        assert_eq!(rows, expected.map(Vec::from));
        assert_eq!(product(&[]), [Vec::<usize>::new()]);
    }

    #[test]
    fn every_pair_of_values_meets_in_far_fewer_rows_than_the_product() {
        // The longest two axes ask for 10 x 9 rows, the product has 43,200.
        let lengths = [10, 6, 4, 9, 10, 2];
        let rows = pairwise(&lengths);
        assert_covers(&lengths, &rows);
        assert!((100..=130).contains(&rows.len()), "{}", rows.len());
        // Thirteen axes of three values: 9 rows are the least thinkable, 15 the best known.
        let rows = pairwise(&[3; 13]);
        assert_covers(&[3; 13], &rows);
        assert!(rows.len() <= 22, "{}", rows.len());
    }

    #[test]
    fn one_or_two_axes_have_no_shorter_cover_than_the_product() {
        assert_eq!(pairwise(&[3]), product(&[3]));
        let rows: BTreeSet<_> = pairwise(&[3, 4]).into_iter().collect();
        assert_eq!(rows, product(&[3, 4]).into_iter().collect());
    }

    proptest! {
        #[test]
        fn any_axes_are_covered(lengths in prop::collection::vec(1_usize..6, 2..6)) {
            let rows = pairwise(&lengths);
            assert_covers(&lengths, &rows);
            prop_assert!(rows.len() <= lengths.iter().product());
            prop_assert_eq!(rows, pairwise(&lengths));
        }
    }
}
