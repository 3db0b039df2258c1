"""Noise multipliers, numbers of steps and sample rates that never exceed a privacy target."""
