"""The tables and figures of the five papers, and the studies on public data that go with them."""
