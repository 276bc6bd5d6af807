"""What a monitor costs: space and time of its store, memory and processor time of its process."""
