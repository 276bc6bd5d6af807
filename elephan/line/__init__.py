"""Line tests on an Ethernet interface: trials, methods, refusals, report. Frames and their clocks are the core's."""
