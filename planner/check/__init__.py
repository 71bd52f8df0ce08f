"""Predictions held against measurements, papers and a simulation."""
