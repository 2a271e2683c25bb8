"""Tables and documents of the commands of `tunesmith store`."""
