"""Rooflines: peak and bandwidth of devices, as vendors publish them and as measured."""
