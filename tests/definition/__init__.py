"""Drivers against a raw local server, the demo, names."""
