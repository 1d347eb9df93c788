"""Offline evaluation: scores, benchmarks and measurements of what leaves.

Only this package knows Ragas, and only in a child process (I11).
"""
