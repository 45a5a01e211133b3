"""Synthetic microdata from weighted posteriors: certified (proved) or local (an estimate).

`certified.Synthesizer` is the default; its promise is a theorem because weights depend on one
record alone, Theta is finite and fixed in advance, and theta is drawn exactly. `local` is the
paper's own mechanism, whose epsilon is an estimate.
"""
