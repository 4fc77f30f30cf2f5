"""Which of many rows is asked for next: Zipf's law over numbers that are scattered."""

import bisect
import itertools


def scatter(number):
    """A bijection of 64-bit numbers (the finaliser of MurmurHash3)."""
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        number = (number ^ number >> 33) * factor & 0xFFFF_FFFF_FFFF_FFFF
    return number ^ number >> 33


class Zipf:
    """The n-th most popular of `count` is drawn in proportion to 1 / n ** theta; which one that is lies anywhere."""

    def __init__(self, count, theta, rng):
        self.sums = list(itertools.accumulate((n + 1) ** -theta for n in range(count)))
        self.order = sorted(range(count), key=scatter)
        self.rng = rng

    def draw(self):
        return self.order[bisect.bisect(self.sums, self.rng.random() * self.sums[-1])]
