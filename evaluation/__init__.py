"""What elephan is measured by: performance, fidelity, congestion controls, detection of elephants, mitigations of
moves."""
