"""veilrag: question answering over one's own documents behind a privacy boundary.

Importing this package is free: nothing is read, opened, loaded or compiled (I11).
"""

__version__ = "0.1.0"
