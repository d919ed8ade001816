"""Pages that are made from the code: the reference of names and hooks, the table of rules."""
