"""Arrays of NumPy, torch, DLPack and the CUDA array interface, all shown as `View`s of memory."""
