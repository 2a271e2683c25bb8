"""When does a device wait for memory? Its peak and bandwidth: what vendors publish, and what was measured."""
