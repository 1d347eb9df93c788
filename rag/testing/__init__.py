"""The test kit: parts that speak like the real ones, for tests and for who builds on veilrag."""
