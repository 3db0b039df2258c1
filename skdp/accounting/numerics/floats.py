"""What floating-point arithmetic allows: facts of the machine, not choices."""

UNIT_ROUNDOFF = 2.0**-53  # relative error of one rounded operation, at most
LARGEST_EXPONENT = 700.0  # nats of which the exponential is still a float
SMALLEST_TAIL = 1e-300  # a probability that is a normal number still, with room below
