"""Records from measured tables: a distribution of maximum entropy, and whole records drawn from it.

`junction_tree` does exact sums over all cells of a distribution that is a product of small tables;
`maximum_entropy` fits such a distribution to noisy tables and keeps exact figures; `whole_records`
makes records of it with little noise of their own; `figure_targets` changes the few records that
figures still ask for.
"""
