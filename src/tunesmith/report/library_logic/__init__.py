"""What the commands on library logic print."""
