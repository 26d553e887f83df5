"""Measuring time and instructions, with the spread."""
