"""Turns cluster bytes into frames and back; knows no job, no node and no socket."""
