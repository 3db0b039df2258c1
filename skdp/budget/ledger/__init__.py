"""The file of a budget: a hash chain of charges that outlives processes."""
