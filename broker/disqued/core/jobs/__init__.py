"""Jobs: the record of one, its ID, its serialised form, the table of all of them and walks over it."""
