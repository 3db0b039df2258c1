"""Tables before a plan sees them: what a fit is given becomes `Records` here, wherever it lies."""
