"""The command line: one small file for each command, which imports what it needs when it runs."""
