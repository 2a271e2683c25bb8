"""Is a result right? Guarded and poisoned memory, and comparison with the reference, on the host and the device."""
