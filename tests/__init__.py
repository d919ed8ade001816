"""The tests: the folders mirror those of pai."""
