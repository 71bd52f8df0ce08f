"""Files of other programs, read into spec documents."""
