"""The parts of Tools/docs that read and write files."""
