"""How much noise, how many steps, which rate: a target is never exceeded."""
