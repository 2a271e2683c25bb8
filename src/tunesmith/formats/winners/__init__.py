"""Files of kernels that somebody tuned: tables and specs of other tools, and the tables of our own finals."""
