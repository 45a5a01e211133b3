"""The error of this package: an inference that cannot be made, or that did not come out."""

from __future__ import annotations

from congenial.errors import CongenialError


class InferenceError(CongenialError):
    """A release has no density, a model does not fit it, or a sampler did not get there."""
