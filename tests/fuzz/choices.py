"""What random programs draw."""
import numpy


class Random:
    def __init__(self, seed):
        self.rng = numpy.random.default_rng(seed)

    def of(self, values):
        return values[int(self.rng.integers(len(values)))]

    def percent(self, chance):
        return self.rng.integers(100) < chance

    def normal(self, *shape):
        return self.rng.standard_normal(shape).astype(numpy.float32)

    def integers(self, low, high, *shape):
        return self.rng.integers(low, high, shape).astype(numpy.int32)
