"""MNN, a library for phones and small machines."""
