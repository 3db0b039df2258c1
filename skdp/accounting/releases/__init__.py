"""One file a release: what is proved about it, and by which theorem."""
