"""The commands `characterize` (numbers of a file's problems) and `calibrate roofline` (a device's roofline)."""
