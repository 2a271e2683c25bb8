"""Is a result right? Guarded and poisoned memory, the comparison with the reference, on the host and on the device."""
