"""Tables before a plan: the input of a fit becomes `Records` here, from any kind of storage."""
