"""Arrays of NumPy, torch, DLPack and the CUDA array interface, as one view of memory."""
